// The short convolution against torch's own, sample by sample.
#include "model/convolve.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace rankscope {
namespace {

Batch packed(const std::vector<int64_t>& lengths) {
  Batch b;
  b.offsets = {0};
  for (const int64_t n : lengths) {
    b.offsets.push_back(b.offsets.back() + n);
    b.samples.push_back(b.count());
  }
  return b;
}

// Sums of at most 9 terms of order one, twice.
constexpr double kRounding = 1e-14;

// Equal lengths side by side and apart, texts of one token and texts shorter than the kernel.
TEST(Convolve, IsThePaddedConvolutionOfEverySampleByItself) {
  at::manual_seed(1);
  const Batch batch = packed({3, 3, 1, 7, 3});
  for (const int64_t taps : {1, 2, 4, 9}) {
    const at::Tensor x = at::randn({batch.tokens(), 5}, at::kDouble), W = at::randn({5, taps}, at::kDouble);
    const at::Tensor out = convolve(x, W, batch);
    for (int64_t s = 0; s < batch.count(); ++s) {
      const int64_t begin = batch.offsets[static_cast<size_t>(s)], T = batch.length(s);
      const at::Tensor theirs =
          at::conv1d(x.narrow(0, begin, T).t().unsqueeze(0), W.unsqueeze(1), {}, 1, taps - 1, 1, /*groups=*/5)
              .narrow(2, 0, T)
              .squeeze(0)
              .t();
      EXPECT_LT((out.narrow(0, begin, T) - theirs).abs().max().item<double>(), kRounding) << taps;
    }
  }
}

TEST(Convolve, BackIsTheAdjointForSeveralStreamsAtOnce) {
  at::manual_seed(2);
  const Batch batch = packed({4, 1, 6});
  const at::Tensor x = at::randn({3, 11, 5}, at::kDouble), y = at::randn({3, 11, 5}, at::kDouble),
                   W = at::randn({5, 4}, at::kDouble);
  const double one = (y * convolve(x, W, batch)).sum().item<double>(),
               other = (convolve_back(y, W, batch) * x).sum().item<double>();
  EXPECT_NEAR(one, other, 165 * kRounding);  // of so many products
}

}  // namespace
}  // namespace rankscope
