#include "operator/token_map.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace rankscope {
namespace {

// Tokens at once: what a cache holds, or what fills a GPU.
int64_t side_by_side(const at::Tensor& x) { return x.is_cuda() ? 64 : 8; }

}  // namespace

void token_map(const AffineChain& chain, const at::Tensor& x, const at::Tensor& directions, at::Tensor& in,
               at::Tensor& in_out) {
  const c10::NoGradGuard no_grad;
  const int64_t N = x.size(0);
  in = at::empty({N, N}, x.options());
  in_out = at::empty({N, N}, x.options());
  for (int64_t first = 0; first < N; first += side_by_side(x)) {
    const int64_t count = std::min(side_by_side(x), N - first);
    at::Tensor alone = at::zeros({count, N, x.size(1)}, x.options());
    for (int64_t k = 0; k < count; ++k) alone[k][first + k] = x[first + k];
    const at::Tensor y = chain.apply(alone);  // [count, N, w]
    in.narrow(1, first, count).copy_(at::linalg_vector_norm(y, 2, {-1}).t());
    in_out.narrow(1, first, count).copy_((y * directions).sum(-1).t());
  }
}

}  // namespace rankscope
