#include "operator/chain.h"

namespace rankscope {
namespace {

// [N, d] as one stream, and back.
template <class Call>
at::Tensor as_streams(const at::Tensor& x, Call call) {
  return x.dim() == 3 ? call(x) : call(x.unsqueeze(0)).squeeze(0);
}

at::Tensor along(const Branch& branch, at::Tensor z, bool with_bias) {
  for (const Element& e : branch) {
    z = e.part->apply(z);
    if (const at::Tensor bias = with_bias ? e.part->bias() : at::Tensor(); bias.defined()) z = z.add_(bias);
  }
  return z;
}

at::Tensor back(const Branch& branch, at::Tensor z) {
  for (auto e = branch.rbegin(); e != branch.rend(); ++e) z = e->part->adjoint(z);
  return z;
}

// The sum over the branches, and z itself where there is a skip.
template <class Call>
at::Tensor joined(const FrozenStep& step, const at::Tensor& z, Call call) {
  at::Tensor sum = call(step.branches.front());
  for (size_t i = 1; i < step.branches.size(); ++i) sum = sum.add_(call(step.branches[i]));
  return step.skip ? sum.add_(z) : sum;
}

at::Tensor forward(const std::vector<FrozenStep>& steps, at::Tensor z, bool with_bias) {
  for (const FrozenStep& step : steps)
    z = joined(step, z, [&](const Branch& branch) { return along(branch, z, with_bias); });
  return z;
}

}  // namespace

at::Tensor AffineChain::apply(const at::Tensor& x) const {
  return as_streams(x, [&](const at::Tensor& z) { return forward(steps_, z, false); });
}

at::Tensor AffineChain::affine(const at::Tensor& x) const {
  return as_streams(x, [&](const at::Tensor& z) { return forward(steps_, z, true); });
}

at::Tensor AffineChain::adjoint(const at::Tensor& y) const {
  return as_streams(y, [&](at::Tensor z) {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
      z = joined(*step, z, [&](const Branch& branch) { return back(branch, z); });
    return z;
  });
}

AffineChain AffineChain::then(const AffineChain& next) const {
  AffineChain both = *this;
  for (const FrozenStep& step : next.steps_) both.push(step);
  return both;
}

}  // namespace rankscope
