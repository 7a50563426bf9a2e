// Heads that stand in for each other: each alone can go, both cannot, and not because small costs add up.
// Costs in KL are quadratic and do not add even where effects do: two heads that do the same cost four times
// what one costs without standing in for each other. So what both cost is held against the cost of their
// effects on the last hidden state added up, x_A + x_B - x, not against the sum of their costs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/table.h"
#include "importance/evaluator.h"

namespace rankscope {

/// A head that carries the same numbers whatever the tokens: its mean, or zeros.
struct FixedHead {
  int64_t layer = 0, head = 0;
  std::vector<double> values = {};
  std::string label() const;  // "L5H3"
};

/// Rows `stand_in` of the variants `prefix` + "L5H3+L7H0": what both cost more than their added effects
/// would, output_kl or output_error: means over samples, with their standard errors.
void measure_stand_ins(Evaluator& evaluator, const std::vector<FixedHead>& heads,
                       const std::vector<std::pair<size_t, size_t>>& pairs, const std::string& prefix,
                       ResultTable& table);

}  // namespace rankscope
