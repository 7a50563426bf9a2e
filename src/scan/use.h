// Whether the network reads what tells tokens apart: scan --off tokens.
#pragma once

#include <string>
#include <vector>

#include "pass/request.h"
#include "scan/ablate.h"

namespace rankscope {

/// In each layer, in front of its MLP, the content tokens of a sample are replaced by their mean (causal:
/// each by the mean of those up to it), and the rest of the network runs on. Row `use` of the layer: how far
/// that moves the output, over how far the mean output of the corpus is from it. (L + 1) / 2 forward passes,
/// and one.
void measure_use(const Ablation& what, ResultTable& table, std::vector<std::string>& notes);

}  // namespace rankscope
