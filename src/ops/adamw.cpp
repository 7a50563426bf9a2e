#include "ops/adamw.h"

#include <ATen/ATen.h>

#include "kernels/cuda/train.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {

using at::Tensor;

void adamw_reference(const AdamW& rule, const Tensor& count, const Tensor& rate, const Tensor& alive,
                     const Tensor& gradient, const Tensor& parameter, const Tensor& m, const Tensor& v) {
  const auto correction = [&](float beta) {  // 1 - beta^step, in double precision like the kernels'
    return (1.0 - at::pow(static_cast<double>(beta), count.to(at::kDouble))).to(at::kFloat);
  };
  const Tensor new_m = m * rule.beta1 + gradient * (1 - rule.beta1);
  const Tensor new_v = v * rule.beta2 + gradient.square() * (1 - rule.beta2);
  const Tensor decayed = parameter - rate * rule.weight_decay * parameter;
  const Tensor new_parameter = decayed - rate * (new_m / correction(rule.beta1)) /
                                             ((new_v / correction(rule.beta2)).sqrt() + rule.epsilon);
  const Tensor moves = alive.unsqueeze(1) != 0;
  parameter.copy_(at::where(moves, new_parameter, parameter));
  m.copy_(at::where(moves, new_m, m));
  v.copy_(at::where(moves, new_v, v));
}

void apply_adamw(const AdamW& rule, float lr, int64_t step, const Tensor& gradient, const Tensor& parameter,
                 const Tensor& m, const Tensor& v) {
  if (fused_kernels()) {
    adamw_update(rule, lr, step, parameter.numel(), gradient.data_ptr<float>(), parameter.data_ptr<float>(),
                 m.data_ptr<float>(), v.data_ptr<float>());
    return;
  }
  adamw_reference(rule, at::full({1, 1}, step, at::kLong), at::full({1, 1}, lr, at::kFloat),
                  at::ones({1}, at::kInt), gradient.unsqueeze(0), parameter.unsqueeze(0), m.unsqueeze(0),
                  v.unsqueeze(0));
}

void apply_adamw(const AdamW& rule, const Tensor& steps, const Tensor& lr, const Tensor& alive,
                 const Tensor& gradient, const Tensor& parameter, const Tensor& m, const Tensor& v) {
  if (!fused_kernels() || !parameter.is_cuda()) {
    const Tensor step = steps.unsqueeze(1);
    adamw_reference(rule, step + 1, lr.gather(1, step), alive, gradient, parameter, m, v);
    return;
  }
  cuda::adamw_update(rule, parameter.size(0), parameter.size(1), steps.data_ptr<int64_t>(),
                     lr.data_ptr<float>(), lr.size(1), alive.data_ptr<int32_t>(), gradient.data_ptr<float>(),
                     parameter.data_ptr<float>(), m.data_ptr<float>(), v.data_ptr<float>(),
                     current_stream(parameter));
}

}  // namespace rankscope
