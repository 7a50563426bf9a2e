#include "operator/chain.h"

namespace rankscope {
namespace {

// [N, d] as one stream, and back.
template <class Call>
at::Tensor as_streams(const at::Tensor& x, Call call) {
  return x.dim() == 3 ? call(x) : call(x.unsqueeze(0)).squeeze(0);
}

at::Tensor forward(const std::vector<Step>& steps, at::Tensor z, bool with_bias) {
  for (const Step& step : steps) {
    at::Tensor branch = z;
    for (const Element& e : step.elements) {
      branch = e.part->apply(branch);
      if (const at::Tensor bias = with_bias ? e.part->bias() : at::Tensor(); bias.defined())
        branch = branch.add_(bias);
    }
    z = step.skip ? branch.add_(z) : branch;
  }
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
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      at::Tensor branch = z;
      for (auto e = step->elements.rbegin(); e != step->elements.rend(); ++e)
        branch = e->part->adjoint(branch);
      z = step->skip ? branch.add_(z) : branch;
    }
    return z;
  });
}

AffineChain AffineChain::then(const AffineChain& next) const {
  AffineChain both = *this;
  for (const Step& step : next.steps_) both.push(step);
  return both;
}

}  // namespace rankscope
