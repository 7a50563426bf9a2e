#include "model/convolve.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace rankscope {
namespace {

// Samples x [.., S, T, C] of one length: a sum of shifted copies, one a tap, which is as fast as a kernel for
// the four taps that networks have. A tap further back than the text is long sees nothing.
at::Tensor shifted_sum(const at::Tensor& x, const at::Tensor& W, bool back) {
  const int64_t T = x.size(-2), taps = W.size(1), reach = std::min(taps, T) - 1;
  const at::Tensor padded = at::constant_pad_nd(
      x, back ? std::vector<int64_t>{0, 0, 0, reach} : std::vector<int64_t>{0, 0, reach, 0});
  at::Tensor out = x * W.select(1, taps - 1);
  for (int64_t j = 1; j <= reach; ++j)
    out = at::addcmul(out, padded.narrow(-2, back ? j : reach - j, T), W.select(1, taps - 1 - j));
  return out;
}

at::Tensor over_samples(const at::Tensor& x, const at::Tensor& W, const Batch& batch, bool back) {
  std::vector<at::Tensor> out;
  for (int64_t s = 0; s < batch.count();) {
    const int64_t first = s, T = batch.length(s);
    while (s < batch.count() && batch.length(s) == T) ++s;
    const at::Tensor samples = x.narrow(-2, batch.offsets[static_cast<size_t>(first)], (s - first) * T)
                                   .unflatten(-2, {s - first, T});
    out.push_back(shifted_sum(samples, W, back).flatten(-3, -2));
  }
  return out.size() == 1 ? out.front() : at::cat(out, -2);
}

}  // namespace

at::Tensor convolve(const at::Tensor& x, const at::Tensor& W, const Batch& batch) {
  return over_samples(x, W, batch, false);
}

at::Tensor convolve_back(const at::Tensor& y, const at::Tensor& W, const Batch& batch) {
  return over_samples(y, W, batch, true);
}

}  // namespace rankscope
