// The CUDA stream torch would launch on, as kernels/cuda takes it; null where there is no CUDA.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

void* current_stream(const at::Tensor& on);

}  // namespace rankscope
