#include "cli/path_counts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <numbers>
#include <ostream>

#include "base/error.h"
#include "base/published.h"
#include "report/text.h"

namespace rankscope {
namespace {

// The constants of the published weight model.
constexpr double kModelR0 = 400, kModelC = 1.0491046;

}  // namespace

void add_counts(std::vector<Column>& columns, const PathCounts& counts) {
  Column paths{"paths", {}}, share{"share", {}};
  for (size_t k = 0; k < counts.share.size(); ++k) {
    const double log10 = counts.log10_count[k];
    paths.cells.push_back(log10 < 6 ? number_text(std::round(std::pow(10, log10)))
                                    : fmt::format("10^{:.2f}", log10));
    share.cells.push_back(number_text(counts.share[k]));
  }
  columns.push_back(paths);
  columns.push_back(share);
}

Column length_column(int64_t layers) {
  Column c{"length", {}};
  for (int64_t k = 0; k <= layers; ++k) c.cells.push_back(std::to_string(k));
  return c;
}

void print_count(int64_t layers, int64_t heads, std::vector<double> alpha, std::ostream& out) {
  const PathCounts counts = path_counts(layers, heads);
  std::vector<Column> columns{length_column(layers)};
  add_counts(columns, counts);
  if (!alpha.empty()) {
    if (alpha.size() == 1) alpha.resize(static_cast<size_t>(layers), alpha.front());
    if (static_cast<int64_t>(alpha.size()) != layers)
      throw usage_error(fmt::format("--alpha takes one number, or one for each of {} layers, not {}", layers,
                                    alpha.size()));
    Column weight{"modelled weight", {}};
    for (const double log : log_path_weights(alpha, heads, kModelR0, kModelC)) {
      const double log10 = log * std::numbers::log10e;
      weight.cells.push_back(std::isinf(log10)        ? "0"
                             : std::fabs(log10) < 300 ? number_text(std::pow(10, log10))
                                                      : fmt::format("10^{:.4g}", log10));
    }
    columns.push_back(weight);
  }
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
  if (!alpha.empty())
    out << fmt::format(
        "\nmodelled weight, of length k: over all choices of k layers, 1 - A of each layer taken\n"
        "times A of each of the others, summed; times heads^k and {:g} / {:.7f}^(3^k - 1)\n",
        kModelR0, kModelC);
  out << fmt::format("\n10^{:.2f} paths, mean length {:.3f}, standard deviation {:.3f}\n", counts.log10_total,
                     counts.mean, counts.deviation);
}

void print_published_counts(std::ostream& out) {
  std::vector<Column> columns{{"model", {}, true}, {"layers", {}}, {"heads", {}}, {"paths", {}}, {"mean", {}},
                              {"s.d.", {}},        {"mode", {}},   {"all", {}},   {"-1", {}},    {"-2", {}},
                              {"-3", {}},          {"-4", {}},     {"ratio", {}}};
  for (const auto& row : published_rows("dong2021_path_counts")) {
    const auto layers = static_cast<int64_t>(published_number(row[1]));
    const auto heads = static_cast<int64_t>(published_number(row[2]));
    const PathCounts counts = path_counts(layers, heads);
    std::vector<double> ours{counts.log10_total, counts.mean, counts.deviation,
                             static_cast<double>(counts.mode)};
    for (int64_t skipped = 0; skipped < 5; ++skipped)
      ours.push_back(counts.share[static_cast<size_t>(layers - skipped)]);
    size_t c = 0;
    for (const std::string_view cell : {row[0], row[1], row[2]}) columns[c++].cells.emplace_back(cell);
    double worst = 1;
    for (size_t i = 0; i < ours.size(); ++i) {
      columns[c++].cells.push_back(i == 0  ? fmt::format("10^{:.2f}", ours[i])
                                   : i < 3 ? fmt::format("{:.3f}", ours[i])
                                           : number_text(ours[i]));
      const double ratio = ours[i] / published_number(row[i + 3]);
      // Printed with four decimals: a share below 1e-3 is mostly rounding.
      if ((i < 4 || ours[i] > 1e-3) && std::fabs(ratio - 1) > std::fabs(worst - 1)) worst = ratio;
    }
    columns[c].cells.push_back(fmt::format("{:.3f}", worst));
  }
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
  out << "\nall, -1, ...: share of the paths through every layer, all but one, ...\n"
         "ratio: the farthest of our numbers over the published one (Dong, Cordonnier and\n"
         "Loukas 2021), which has four decimals\n";
}

}  // namespace rankscope
