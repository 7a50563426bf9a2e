#include "operator/chained.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace rankscope {
namespace {

double composite(const at::Tensor& a) {
  const at::Tensor b = a.abs();
  return std::sqrt(b.sum(0).max().item<double>() * b.sum(1).max().item<double>());
}

}  // namespace

std::vector<at::Tensor> patterns_of(const AffineChain& chain, int64_t sample) {
  std::vector<at::Tensor> out;
  for (const FrozenStep& step : chain.steps())
    for (const Branch& branch : step.branches)
      for (const Element& e : branch)
        if (e.kind == PartKind::attention)
          out.push_back(static_cast<const FrozenProgram&>(*e.part).patterns()[static_cast<size_t>(sample)]);
  return out;
}

at::Tensor chained_attention(const std::vector<at::Tensor>& patterns, const Path& path, bool ascending) {
  const c10::NoGradGuard no_grad;
  at::Tensor product = at::eye(patterns.front().size(-1), patterns.front().options().dtype(at::kDouble));
  for (size_t l = 0; l < path.size(); ++l) {
    if (path[l] < 0) continue;
    const at::Tensor P = patterns[l][path[l]].to(at::kDouble);
    product = ascending ? product.matmul(P) : P.matmul(product);
  }
  return product;
}

double distance_from_rank_one(const at::Tensor& P) {
  const c10::NoGradGuard no_grad;
  // By iteration: the first singular vectors of a matrix without negative entries have none either, so the
  // start is never far from them.
  constexpr int kMost = 1000;
  constexpr double kSettled = 1e-14;
  const int check = P.is_cpu() ? 1 : 16;  // iterations between two looks: each waits for the device
  at::Tensor v = at::full({P.size(1)}, 1 / std::sqrt(static_cast<double>(P.size(1))), P.options());
  at::Tensor u, image;
  for (int i = 0; i < kMost; ++i) {
    u = P.mv(v);
    u = u / u.norm();
    image = P.t().mv(u);  // sigma v
    const at::Tensor next = image / image.norm();
    const at::Tensor moved = (next - v).norm();
    v = next;
    if (i % check == check - 1 && moved.item<double>() < kSettled) break;
  }
  return composite(P - at::outer(u, image)) / composite(P);
}

}  // namespace rankscope
