// Views of the pass as plain numbers on the host.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"

namespace rankscope {

/// The tensor on the host, contiguous; the tensor itself where it already is.
at::Tensor host(const at::Tensor& x);

/// `count` numbers of the contiguous host tensor x from `first` on, as doubles.
void load(const at::Tensor& x, int64_t first, int64_t count, double* to);

}  // namespace rankscope
