#include "ops/adamw.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <cmath>

#include "ops/checks.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {

using at::Tensor;

namespace {

// One a gradient; what has to be copied for it is added to `copies`.
std::vector<cuda::AdamWSegment> segments_of(const std::vector<Tensor>& gradients,
                                            const std::vector<int64_t>& offsets,
                                            std::vector<Tensor>& copies) {
  std::vector<cuda::AdamWSegment> out;
  for (size_t i = 0; i < gradients.size(); ++i) {
    auto found = adamw_segment(gradients[i], offsets[i]);
    if (!found) found = adamw_segment(copies.emplace_back(gradients[i].contiguous()), offsets[i]);
    out.push_back(found.value());
  }
  return out;
}

}  // namespace

std::optional<cuda::AdamWSegment> adamw_segment(const Tensor& gradient, int64_t offset) {
  cuda::AdamWSegment s{.gradient = gradient.data_ptr<float>(),
                       .offset = offset,
                       .rows = 1,
                       .columns = 1,
                       .row_stride = 0,
                       .column_stride = 1,
                       .trial_stride = gradient.stride(0)};
  for (int64_t d = gradient.dim() - 1; d > 0; --d) {
    const int64_t size = gradient.size(d), stride = gradient.stride(d);
    if (size == 1) continue;
    if (s.columns == 1) {
      s.columns = size;
      s.column_stride = stride;
    } else if (s.rows == 1 && stride == s.columns * s.column_stride) {
      s.columns *= size;
    } else if (s.rows == 1) {
      s.rows = size;
      s.row_stride = stride;
    } else if (stride == s.rows * s.row_stride) {
      s.rows *= size;
    } else {
      return std::nullopt;
    }
  }
  return s;
}

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
                 const std::vector<Tensor>& gradients, const std::vector<int64_t>& offsets,
                 const Tensor& parameter, const Tensor& m, const Tensor& v) {
  const int64_t rates = lr.size(1);
  if (fused_for(parameter) && parameter.is_cuda()) {
    std::vector<Tensor> copies;  // live until the kernel that reads them is in the stream
    const std::vector<cuda::AdamWSegment> segments = segments_of(gradients, offsets, copies);
    cuda::adamw_update(rule, parameter.size(0), parameter.size(1), steps.data_ptr<int64_t>(),
                       lr.data_ptr<float>(), rates, alive.data_ptr<int32_t>(), segments,
                       parameter.data_ptr<float>(), m.data_ptr<float>(), v.data_ptr<float>(),
                       current_stream(parameter));
    return;
  }
  const Tensor count = steps.unsqueeze(1), rate = lr.gather(1, count.clamp(0, rates - 1));
  const Tensor moves = alive.ne(0).logical_and(steps.ge(0)).logical_and(steps.lt(rates));
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor gradient = gradients[i].flatten(1);
    const auto part = [&](const Tensor& x) { return x.narrow(1, offsets[i], gradient.size(1)); };
    if (!fused_for(parameter)) {
      adamw_reference(rule, count + 1, rate, moves, gradient, part(parameter), part(m), part(v));
      continue;
    }
    for (int64_t t = 0; t < parameter.size(0); ++t)
      if (moves[t].item<bool>())
        apply_adamw(rule, rate[t].item<float>(), steps[t].item<int64_t>() + 1, gradient[t].contiguous(),
                    part(parameter)[t], part(m)[t], part(v)[t]);
  }
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

void call_adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                const Tensor& steps, const Tensor& lr, const Tensor& alive, double beta1, double beta2,
                double eps, double weight_decay) {
  require_memory(parameter, "parameter");
  require_memory(steps, "steps");
  require_memory(alive, "alive");
  require(parameter.dim() == 2 && parameter.scalar_type() == at::kFloat,
          "parameter must be float32 [trials, size]");
  const int64_t trials = parameter.size(0);
  for (const auto& [x, name] : {std::pair{&gradient, "gradient"}, {&m, "m"}, {&v, "v"}}) {
    require_alike(*x, parameter, name);
    require(x->sizes() == parameter.sizes(), fmt::format("{} must have the shape of parameter", name));
  }
  require(steps.dim() == 1 && steps.size(0) == trials && steps.scalar_type() == at::kLong &&
              steps.device() == parameter.device(),
          "steps must be int64 [trials] on the device of parameter");
  require(alive.dim() == 1 && alive.size(0) == trials && alive.scalar_type() == at::kInt &&
              alive.device() == parameter.device(),
          "alive must be int32 [trials] on the device of parameter");
  require_alike(lr, parameter, "lr");
  require(lr.dim() == 2 && lr.size(0) == trials && lr.size(1) >= 1,
          "lr must be [trials, rates] with at least one rate");
  const Tensor* written[] = {&parameter, &m, &v};
  for (size_t i = 0; i < std::size(written); ++i) {
    require(written[i]->is_contiguous(), "parameter, m and v must be contiguous");
    for (const Tensor* read : {&gradient, &lr}) at::assert_no_overlap(*read, *written[i]);
    for (size_t j = 0; j < i; ++j) at::assert_no_overlap(*written[j], *written[i]);
  }
  const AdamW rule{static_cast<float>(beta1), static_cast<float>(beta2), static_cast<float>(eps),
                   static_cast<float>(weight_decay)};
  for (const float beta : {rule.beta1, rule.beta2})
    require(beta >= 0 && beta < 1, fmt::format("a beta of {} is not in [0, 1)", beta));
  for (const float x : {rule.epsilon, rule.weight_decay})
    require(x >= 0 && std::isfinite(x), "eps and weight_decay must be finite and not negative");
  const c10::NoGradGuard no_gradients;
  // A kernel's writes are invisible to autograd, which must refuse a backward pass through what they changed.
  // Told first, it may refuse the writes themselves (inference tensors).
  for (const Tensor* x : written) x->unsafeGetTensorImpl()->bump_version();
  apply_adamw(rule, steps.contiguous(), lr.contiguous(), alive.contiguous(), {gradient}, {0}, parameter, m,
              v);
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def(
      "adamw_(Tensor(a!) parameter, Tensor gradient, Tensor(b!) m, Tensor(c!) v, Tensor steps, Tensor lr, "
      "Tensor alive, float beta1, float beta2, float eps, float weight_decay) -> ()",
      rankscope::call_adamw);
}
