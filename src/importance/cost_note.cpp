#include "importance/cost_note.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 13> kCosts{{{"heads", "head_zero"},
                                                                      {"heads by their mean", "head_mean"},
                                                                      {"heads resampled", "head_resample"},
                                                                      {"MLPs", "mlp_zero"},
                                                                      {"MLPs by their mean", "mlp_mean"},
                                                                      {"MLPs resampled", "mlp_resample"},
                                                                      {"layers", "layer_zero"},
                                                                      {"experts", "expert_zero"},
                                                                      {"estimates", "estimate"},
                                                                      {"pruning", "prune"},
                                                                      {"ranks of qk", "rank_qk"},
                                                                      {"ranks of ov", "rank_ov"},
                                                                      {"ranks of kv", "rank_kv"}}};

const Row* of_full(const ResultTable& table, std::string_view metric) {
  const auto at = std::find_if(table.rows.begin(), table.rows.end(),
                               [&](const Row& r) { return r.variant == "full" && r.metric == metric; });
  return at == table.rows.end() ? nullptr : &*at;
}

}  // namespace

std::string cost_note(const ResultTable& table) {
  std::vector<std::string> parts;
  int64_t samples = 0;
  for (const auto& [what, stem] : kCosts) {
    const Row *passes = of_full(table, fmt::format("{}_passes", stem)),
              *bound = of_full(table, fmt::format("{}_passes_bound", stem));
    if (passes == nullptr) continue;
    samples = passes->n;
    parts.push_back(fmt::format("{} {:.1f}", what, passes->value) +
                    (bound == nullptr ? "" : fmt::format(" (bound {:.1f})", bound->value)));
  }
  if (parts.empty()) return "";
  return fmt::format("forward passes of {} sample{}, counted: {}", samples, samples == 1 ? "" : "s",
                     fmt::join(parts, ", "));
}

}  // namespace rankscope
