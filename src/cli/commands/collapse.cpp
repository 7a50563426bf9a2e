// rankscope collapse: every combination of parts on the same texts, and who holds the rank up.
#include "collapse/collapse.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/options.h"
#include "report/columns.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr const char* kBelowCollapse =
    "Presets:\n"
    "  factorial  attention skip on or off, MLP with its skip, without it or off, norms on or off: 12 "
    "networks\n"
    "  paper      SAN (no attention skip, no MLP), SAN+MLP, SAN+skip and transformer of Dong, Cordonnier "
    "and\n"
    "             Loukas (2021); norms stay\n"
    "  published  the same as their code ran it: ALBERT keeps the activation, skip and norm of its MLP\n"
    "paper and published show the curves of figure 2 beside ours. Those at initialisation are one network a\n"
    "variant, without a seed, on 32 texts: --networks 5 --zipf tells how far networks scatter.\n"
    "\n"
    "residual_l1inf_rel is sqrt(||R||_1 ||R||_inf) over the same norm of X, R = X - 1 x^T. The exponent "
    "compares "
    "the\n"
    "last two steps of its logarithm: 3 is the cubic law, 1 a geometric one. The split arithmetic keeps\n"
    "X = 1 x^T + R apart and follows R where float32 stalls near 2e-07.\n";

struct CollapseOptions {
  InputOptions input;
  CollapseRequest request;
  bool no_theory = false;
};

// One cell a depth; a decimal exponent where no double can hold the value.
std::string value_at(const ResultTable& t, const std::string& variant, const char* metric, int depth) {
  const std::string site =
      depth == 0 ? "blocks.0.hook_resid_pre" : fmt::format("blocks.{}.hook_resid_post", depth - 1);
  const int layer = std::max(0, depth - 1);
  const Row* r = t.find(variant, metric, layer, -1, "all", site);
  if (r == nullptr) return "-";
  const Row* log10 = t.find(variant, "residual_l1inf_rel_log10", layer, -1, "all", site);
  if (log10 != nullptr && std::string_view(metric).starts_with("residual") && log10->value < -300)
    return fmt::format("10^{:.1f}", log10->value);
  return number_text(r->value);
}

std::vector<std::string> names_of(const ResultTable& t) {
  std::vector<std::string> out;
  for (const Row& r : t.rows)
    if (r.metric == "residual_l1inf_rel" && std::find(out.begin(), out.end(), r.variant.str()) == out.end())
      out.push_back(r.variant.str());
  // The law first, beside what plain arithmetic makes of it; the whole network ran there only to be compared
  // with.
  const std::vector<std::string> order{"SAN", "SAN float32", "SAN+skip", "SAN+MLP", "transformer"};
  const auto place = [&](const std::string& name) {
    return std::find(order.begin(), order.end(), name) - order.begin();
  };
  std::stable_sort(out.begin(), out.end(), [&](auto& a, auto& b) { return place(a) < place(b); });
  std::erase_if(out, [](const std::string& name) { return name == "transformer float32"; });
  return out;
}

// Few variants: a column each, with exponents and what was published beside them.
void print_by_depth(const ScanResult& result, std::ostream& out) {
  const ResultTable& t = result.table;
  const int depth = static_cast<int>(result.spec.depth());
  std::vector<Column> columns{{"depth", {}}};
  for (int d = 0; d <= depth; ++d) columns[0].cells.push_back(std::to_string(d));
  const auto add = [&](const std::string& title, const std::string& variant, const char* metric) {
    Column c{title, {}};
    for (int d = 0; d <= depth; ++d) c.cells.push_back(value_at(t, variant, metric, d));
    if (!std::all_of(c.cells.begin(), c.cells.end(), [](const std::string& s) { return s == "-"; }))
      columns.push_back(c);
  };
  const bool several = result.manifest.contains("networks");
  for (const std::string& variant : names_of(t)) {
    const bool alone = variant == "SAN" || variant == "SAN+MLP";
    add(variant, variant, "residual_l1inf_rel_mean");
    if (several) add("± networks", variant, "residual_l1inf_rel_sd_networks");
    if (several) add("± texts", variant, "residual_l1inf_rel_sd_texts");
    if (alone) add("exponent", variant, "local_exponent");
    add("published", variant, "published");
    if (several) add("± theirs", variant, "published_sd");
    add("ratio", variant, "published_ratio");
  }
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
  out << "residual_l1inf_rel by depth: arithmetic means, as published; exponents, and what stands as 10^x, "
         "are of "
         "geometric ones\n";
}

// Many: a line each.
void print_by_variant(const ScanResult& result, std::ostream& out) {
  const ResultTable& t = result.table;
  const TerminalStyle style = terminal_style(STDOUT_FILENO);
  const int depth = static_cast<int>(result.spec.depth());
  std::vector<int> shown{0, 1, 2, depth / 2, depth};
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  std::vector<Column> columns{{"variant", {}, true}, {"by depth", {}, true}};
  for (const int d : shown) columns.push_back({fmt::format("at {}", d), {}});
  for (const std::string& variant : names_of(t)) {
    columns[0].cells.push_back(variant);
    std::vector<double> curve;  // eight decades, from rounding to one
    for (int d = 0; d <= depth; ++d) {
      const Row* r =
          t.find(variant, "residual_l1inf_rel", std::max(0, d - 1), -1, "all",
                 d == 0 ? "blocks.0.hook_resid_pre" : fmt::format("blocks.{}.hook_resid_post", d - 1));
      curve.push_back(r == nullptr ? kNone
                                   : std::clamp(1 + std::log10(std::max(r->value, 1e-8)) / 8, 0.0, 1.0));
    }
    columns[1].cells.push_back(sparkline(curve, 13, style.unicode));
    for (size_t i = 0; i < shown.size(); ++i)
      columns[i + 2].cells.push_back(value_at(t, variant, "residual_l1inf_rel", shown[i]));
  }
  out << "residual_l1inf_rel\n";
  print_columns(columns, style, out);
}

void print_collapse(const ScanResult& result, std::ostream& out) {
  names_of(result.table).size() > 6 ? print_by_variant(result, out) : print_by_depth(result, out);
  for (const Row& r : result.table.rows)
    if (r.metric == "noise_floor")
      out << fmt::format("\nnoise floor of {}: {}\n", r.value > 1e-10 ? "float32" : "float64",
                         number_text(r.value));
  out << '\n';
  print_sentences(result, terminal_style(STDOUT_FILENO), out);
}

int run_collapse(CollapseOptions& o, Io& io) {
  fill_in_request(o.input, io);
  o.request.scan = o.input.request;
  o.request.init = o.input.init;
  o.request.theory = !o.no_theory;
  return run_and_report(
      o.input, io, [&](const ProgressCallback& progress) { return engine().collapse(o.request, progress); },
      print_collapse);
}

std::function<int(Io&)> prepare_collapse(CLI::App& app) {
  auto o = std::make_shared<CollapseOptions>();
  o->input.request.samples = 8;
  add_input_options(app, o->input);
  app.add_option("--arithmetic", o->request.arithmetic, "float32, float64 or split")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--preset", o->request.preset,
                 "Which networks: factorial, paper or published (below); factorial, and paper for split")
      ->type_name("NAME");
  app.add_option("--networks", o->request.networks,
                 "With --init: draw this many networks, the same ones for every variant")
      ->check(whole_number(1, kMostNetworks))
      ->capture_default_str();
  app.add_flag("--frozen-norm", o->request.frozen_norm,
               "factorial: norms with the statistics of the whole network, too (norm-statistics)");
  app.add_flag("--positions", o->request.positions, "factorial: without positions, too");
  app.add_flag("--minimiser", o->request.minimiser, "Residuals at the norms' own minimisers, too");
  app.add_flag("--no-theory", o->no_theory, "Leave the cubic bound of the first text out");
  app.footer(kBelowCollapse + std::string("\n") + app.get_footer());
  return [o](Io& io) { return run_collapse(*o, io); };
}

}  // namespace

extern const Command command_collapse{
    .name = "collapse",
    .summary = "Take skips, MLPs and norms out in every combination: who holds the rank up",
    .examples = {"rankscope collapse", "rankscope collapse bert/ --text FILE",
                 "rankscope collapse --init bert-base --samples 32",
                 "rankscope collapse --init albert-base --preset published --networks 5 --zipf",
                 "rankscope collapse --init bert-base --arithmetic split"},
    .prepare = prepare_collapse};

}  // namespace rankscope
