// What the lenses of a scan say about a small network that a study trained: at every depth the mean over
// samples and heads. A number has the definition that docs/METRICS.md gives it, since the lens itself
// measures it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spec/model.h"
#include "tasks/task.h"
#include "train/views.h"

namespace rankscope {

/// By name; what was not measured is not there.
using Readings = std::map<std::string, double>;

/// The names that readings may have.
std::vector<std::string> reading_names();

/// The answers of the network to `batch`, whose sequences have `tokens` tokens each; `read`, where given,
/// takes readings by depth, 0 being the input of the first block:
///   spread (residual_fro_rel), rank_rel (effective_rank_rel), massive_ratio, largest (the largest |x|)
/// and of the attention in front of a depth:
///   attention_rank_rel (effective_rank_rel), attention_rank (numerical_rank), mixing, rank_ceiling,
///   sink_margin, sinks (share of heads with a margin of at least 3), sink_mass, head_evenness
at::Tensor answers_and_readings(const ModelSpec& network, const ParameterViews& parameters,
                                const TaskBatch& batch, int64_t tokens, std::vector<Readings>* read);

}  // namespace rankscope
