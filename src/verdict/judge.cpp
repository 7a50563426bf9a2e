#include <algorithm>

#include "verdict/rule.h"

namespace rankscope {

std::vector<const Rule*> rules_in_order() {
  std::vector<const Rule*> all = rules();
  std::sort(all.begin(), all.end(), [](const Rule* a, const Rule* b) { return a->order < b->order; });
  return all;
}

std::vector<Finding> judge(const ResultTable& table, const ModelSpec& spec, const Thresholds& thresholds,
                           const Measured& measured) {
  using namespace verdict;  // NOLINT(google-build-using-namespace): this is its way out
  Case c{Evidence(table), spec, thresholds, measured, Path(spec), {}};
  for (const Rule* rule : rules_in_order()) rule->judge(c);
  return std::move(c.findings);
}

}  // namespace rankscope
