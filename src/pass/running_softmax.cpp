#include "pass/running_softmax.h"

#include <ATen/ATen.h>

#include <limits>
#include <tuple>

namespace rankscope {

RunningSoftmax RunningSoftmax::of(int64_t rows, const at::Tensor& like) {
  const auto options = like.options().dtype(at::kDouble);
  return {at::full({rows}, -std::numeric_limits<double>::infinity(), options), at::zeros({rows}, options)};
}

RunningSoftmax RunningSoftmax::part(int64_t first, int64_t count) const {
  return {most.narrow(0, first, count), sum.narrow(0, first, count)};
}

RunningSoftmax::Tile RunningSoftmax::add(const at::Tensor& x) const {
  const at::Tensor peak = at::maximum(most, std::get<0>(x.max(1)).to(at::kDouble));
  const at::Tensor p = (x - peak.to(x.scalar_type()).unsqueeze(1)).exp_(), shrink = (most - peak).exp_();
  sum.mul_(shrink).add_(p.sum(1, false, at::kDouble));
  most.copy_(peak);
  return {x, p, shrink};
}

at::Tensor RunningSoftmax::log_z() const { return most + sum.log(); }

void add_difference(const at::Tensor& weighted, const RunningSoftmax::Tile& a, RunningSoftmax::Tile& b) {
  weighted.mul_(a.shrink).add_(at::sub_out(b.p, a.x, b.x).mul_(a.p).sum(1, false, at::kDouble));
}

at::Tensor kl_of(const RunningSoftmax& a, const RunningSoftmax& b, const at::Tensor& weighted) {
  return (weighted / a.sum - a.log_z() + b.log_z()).clamp_min_(0.0);
}

}  // namespace rankscope
