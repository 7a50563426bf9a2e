// The forward pass of any network by the plain interpretation of its steps: the same code a scan runs,
// differentiated. What no fused route knows trains by this.
#pragma once

#include <memory>

#include "model/block.h"
#include "tasks/task.h"
#include "train/views.h"

namespace rankscope {

/// The answers of one trial of the views, as train/fused_forward.h has them; where tokens are labelled,
/// [tokens of all sequences, outputs]. `observer`, where given, sees every block, and behind it
/// "hook_resid_post".
at::Tensor plain_forward(const ModelSpec& spec, const ParameterViews& parameters, const TaskBatch& batch,
                         Dropout* dropout = nullptr, int64_t trial = -1, BlockObserver* observer = nullptr);

/// Takes a share of the numbers out: a function of the seed.
std::unique_ptr<Dropout> seeded_dropout(double share, uint64_t seed);

/// The answers of a stack: by the fused operators where the views are merged for them, trial by trial
/// otherwise.
at::Tensor forward(const std::vector<const ModelSpec*>& specs, const ParameterViews& parameters,
                   const TaskBatch& batch, Dropout* dropout = nullptr);

/// The gradients of a loss; zeros where a leaf has no part in it (the scores of hard attention).
std::vector<at::Tensor> gradients_of(const at::Tensor& loss, const std::vector<at::Tensor>& leaves);

/// Squared error of each sequence, averaged over its answers: [.., sequences].
at::Tensor squared_error(const at::Tensor& answers, const at::Tensor& target);

}  // namespace rankscope
