// Sequences [B, T, ..] one behind another: where one of them begins, and a kernel over all of them.
#pragma once

#include <ATen/ATen.h>

#include "kernels/cpu/parallel.h"

namespace rankscope {

/// Sequence b of x; null where x is empty, as an absent operand is.
template <class T>
T* of_sequence(const at::Tensor& x, int64_t b) {
  return x.numel() == 0 ? nullptr : x.data_ptr<T>() + b * (x.numel() / x.size(0));
}

/// use(T{}, b) for every sequence of x, T its type, over the threads.
template <class Use>
void over_sequences(const at::Tensor& x, const Use& use) {
  parallel_over(x.size(0),
                [&](int64_t b) { x.scalar_type() == at::kDouble ? use(double{}, b) : use(float{}, b); });
}

}  // namespace rankscope
