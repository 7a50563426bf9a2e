#include "model/delta_gates.h"

#include <ATen/ATen.h>

namespace rankscope {

at::Tensor delta_gates(const at::Tensor& write, const at::Tensor& keep, const at::Tensor& rate,
                       const at::Tensor& bias) {
  const at::Tensor forgotten = at::exp(rate) * at::softplus(keep + bias);
  return at::stack({at::sigmoid(write), at::exp(-forgotten)}, -1).flatten(-2);
}

}  // namespace rankscope
