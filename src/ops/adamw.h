// One AdamW update in place: fused kernels where they exist, a plain composition otherwise.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"
#include "kernels/cpu/adamw.h"

namespace rankscope {

/// Flat buffers on the CPU, on this thread; `step` counts from 1.
void apply_adamw(const AdamW& rule, float lr, int64_t step, const at::Tensor& gradient,
                 const at::Tensor& parameter, const at::Tensor& m, const at::Tensor& v);

/// A stack's buffers [trials, size]. steps [trials] counts from 0 and picks the learning rate of lr [trials,
/// all steps]; a trial whose alive [trials] is 0 is left untouched. Everything is read on the device.
void apply_adamw(const AdamW& rule, const at::Tensor& steps, const at::Tensor& lr, const at::Tensor& alive,
                 const at::Tensor& gradient, const at::Tensor& parameter, const at::Tensor& m,
                 const at::Tensor& v);

/// The plain composition: update number count [trials, 1] (from 1) at learning rate rate [trials, 1].
void adamw_reference(const AdamW& rule, const at::Tensor& count, const at::Tensor& rate,
                     const at::Tensor& alive, const at::Tensor& gradient, const at::Tensor& parameter,
                     const at::Tensor& m, const at::Tensor& v);

}  // namespace rankscope
