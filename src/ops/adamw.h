// One AdamW update in place: fused kernels where they exist, a plain composition otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/tensor_fwd.h"
#include "kernels/cuda/train.h"

namespace rankscope {

/// Flat buffers on the CPU, on this thread; `step` counts from 1.
void apply_adamw(const AdamW& rule, float lr, int64_t step, const at::Tensor& gradient,
                 const at::Tensor& parameter, const at::Tensor& m, const at::Tensor& v);

/// A stack's buffers [trials, size], read and written on their device. gradients[i] [trials, ...], strides
/// free, is that of the parameter that starts at offsets[i] of each trial's row; what no gradient covers
/// stays. steps [trials] counts from 0 and picks the learning rate of lr [trials, rates]; a trial whose alive
/// [trials] is 0, or which has no rate for its step, is left untouched.
void apply_adamw(const AdamW& rule, const at::Tensor& steps, const at::Tensor& lr, const at::Tensor& alive,
                 const std::vector<at::Tensor>& gradients, const std::vector<int64_t>& offsets,
                 const at::Tensor& parameter, const at::Tensor& m, const at::Tensor& v);

/// How the CUDA kernel reads a gradient [trials, ...] where it is; none where that takes more than rows and
/// columns.
std::optional<cuda::AdamWSegment> adamw_segment(const at::Tensor& gradient, int64_t offset);

/// The plain composition: update number count [trials, 1] (from 1) at learning rate rate [trials, 1].
void adamw_reference(const AdamW& rule, const at::Tensor& count, const at::Tensor& rate,
                     const at::Tensor& alive, const at::Tensor& gradient, const at::Tensor& parameter,
                     const at::Tensor& m, const at::Tensor& v);

}  // namespace rankscope
