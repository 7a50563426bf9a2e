#include "report/head_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "report/text.h"

namespace rankscope {
namespace {

constexpr std::array kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array kDigits{"0", "1", "2", "3", "4", "5", "6", "7"};

// The first of these that was measured.
constexpr std::array kMetrics{"head_zero_kl",    "head_zero_error",  "head_estimate_kl",   "head_mean_kl",
                              "head_mean_error", "head_resample_kl", "head_resample_error"};

using Cells = std::map<int32_t, std::map<int32_t, double>>;  // by layer and head

Cells cells_of(const ResultTable& table, std::string& metric) {
  for (const char* name : kMetrics) {
    Cells out;
    size_t count = 0;
    for (const Row& r : table.rows)
      if (r.metric == name && r.variant == "full" && r.head >= 0 && std::isfinite(r.value))
        out[r.layer][r.head] = r.value, ++count;
    // A sample of heads beside the estimates of all is no map.
    const bool sampled = std::any_of(out.begin(), out.end(), [](const auto& row) {
      return row.second.rbegin()->first + 1 != static_cast<int32_t>(row.second.size());
    });
    metric = name;
    if (count > 0 && !sampled) return out;
  }
  return {};
}

}  // namespace

std::vector<std::string> head_cells(const ResultTable& table, int width, bool unicode) {
  std::string metric;
  const Cells cells = cells_of(table, metric);
  double least = INFINITY, most = 0;
  int32_t columns = 0;
  for (const auto& [layer, heads] : cells)
    for (const auto& [head, value] : heads) {
      if (value > 0) least = std::min(least, value);
      most = std::max(most, value);
      columns = std::max(columns, head + 1);
    }
  if (cells.empty() || !(most > 0) || 8 + 2 * columns > width) return {};
  least = std::max(least, most * 1e-6);
  const auto& marks = unicode ? kBars : kDigits;
  bool less = false;  // some are below the scale
  const auto mark = [&](double value) {
    if (value < least) return less = true, unicode ? "·" : ".";
    const double share = most > least ? std::log(value / least) / std::log(most / least) : 1.0;
    return marks[static_cast<size_t>(std::clamp(std::lround(share * 7), 0L, 7L))];
  };
  std::vector<std::string> out(1);
  for (const auto& [layer, heads] : cells) {
    std::string line = pad_left(fmt::format("{}", layer), 5) + "  ";
    const auto top = std::max_element(heads.begin(), heads.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
    for (int32_t h = 0; h < columns; ++h)
      line += heads.contains(h) ? std::string(mark(heads.at(h))) + " " : "  ";
    const std::string best = fmt::format(" H{} {}", top->first, number_text(top->second));
    out.push_back(display_width(line) + display_width(best) <= width ? line + best : line);
  }
  out.front() = fmt::format("heads by {}, {} {} to {} {}, logarithmic{}", metric, marks.front(),
                            number_text(least), marks.back(), number_text(most),
                            !less     ? ""
                            : unicode ? "; · less"
                                      : "; . less");
  return out;
}

}  // namespace rankscope
