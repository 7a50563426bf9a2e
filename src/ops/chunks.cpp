#include "ops/chunks.h"

#include <algorithm>

#include "kernels/running_attention.h"

namespace rankscope {

using at::Tensor;

Tensor in_chunks(const Tensor& x, double fill) {
  const int64_t T = x.size(1), n = std::min(T, kRunningChunk), chunks = (T + n - 1) / n;
  std::vector<int64_t> behind(static_cast<size_t>(2 * (x.dim() - 1)), 0);  // from the last dimension on
  behind.back() = chunks * n - T;
  return (behind.back() > 0 ? at::constant_pad_nd(x, behind, fill) : x).unflatten(1, {chunks, n});
}

Tensor out_of_chunks(const Tensor& x, int64_t tokens) { return x.flatten(1, 2).narrow(1, 0, tokens); }

std::vector<Tensor> of_each_chunk(const Tensor& x, int64_t chunks) {
  return x.defined() ? x.unbind(1) : std::vector<Tensor>(static_cast<size_t>(chunks));
}

KeptInChunks::KeptInChunks(const Tensor& keep) {
  if (!keep.defined()) return;
  // By logarithms, in double precision; nothing kept is 1e-300.
  const Tensor sums = at::log(in_chunks(keep, 1).to(at::kDouble).clamp_min(1e-300)).cumsum(2);
  const auto back = [&](const Tensor& x) { return x.to(keep.scalar_type()); };
  const int64_t n = sums.size(2);
  // Above the diagonal the exponent would be positive and large; it is cut off below.
  G = back(at::exp((sums.unsqueeze(3) - sums.unsqueeze(2)).clamp_max(0)).tril());
  before = back(at::exp(sums)).unsqueeze(3);
  to_end = G.select(2, n - 1).unsqueeze(3);
  whole = before.narrow(2, n - 1, 1);
}

}  // namespace rankscope
