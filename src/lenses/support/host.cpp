#include "lenses/support/host.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/cpu/rows.h"

namespace rankscope {

at::Tensor host(const at::Tensor& x) {
  const at::Tensor here = x.detach().to(at::kCPU).contiguous();
  return here.scalar_type() == at::kDouble ? here : here.to(at::kFloat);
}

void load(const at::Tensor& x, int64_t first, int64_t count, double* to) {
  if (x.scalar_type() == at::kDouble)
    std::copy_n(x.data_ptr<double>() + first, count, to);
  else
    kernels::widen(x.data_ptr<float>() + first, count, to);
}

}  // namespace rankscope
