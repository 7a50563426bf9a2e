// Heads that stand in for each other: each alone can go, both cannot, and not because small costs add up.
#pragma once

#include <string>
#include <vector>

#include "scan/ablate.h"

namespace rankscope {

/// A head that carries its mean over the corpus instead of what it carries.
struct MeanHead {
  std::string label;  // "L5H3"
  int64_t layer = 0, head = 0;
  std::vector<double> values = {};
};

/// Takes the heads out in pairs. Row `stand_in` of "-heads-mean:L5H3+L7H0": how much further the output is
/// without both than it would be if their effects on the last hidden state added up. Costs in KL are
/// quadratic and do not add even where effects do, so they are held against the cost of the added effects,
/// not against the added costs. The error is a bootstrap's over samples.
void measure_stand_ins(const Ablation& what, const std::vector<MeanHead>& heads, ResultTable& table,
                       std::vector<std::string>& notes);

}  // namespace rankscope
