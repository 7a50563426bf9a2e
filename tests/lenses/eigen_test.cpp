#include <gtest/gtest.h>

#include "lenses/lens.h"
#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

Collected measured(const at::Tensor& pattern, bool causal) {  // [S, H, T, T]
  std::vector<int64_t> lengths(static_cast<size_t>(pattern.size(0)), pattern.size(2));
  const std::vector<uint8_t> content(static_cast<size_t>(pattern.size(0) * pattern.size(2)), 1);
  const Packed packed(lengths, content, 0);
  const Packing packing = packed.packing();
  Seeing seeing(lens_named("eigen"));
  seeing.tile({pattern, {0, 0, pattern.size(2)}, causal, 0, packing});
  return seeing.finish();
}

TEST(Eigen, UniformAttentionHasTheWholeGapAndAPermutationNone) {
  const at::Tensor uniform = at::full({1, 1, 6, 6}, 1.0 / 6, at::kDouble);
  EXPECT_NEAR(measured(uniform, false).of("eigen_gap", 0, 0), 1.0, 1e-12);
  const at::Tensor shift = at::eye(6, at::kDouble).roll(1, 0).view({1, 1, 6, 6}).contiguous();
  EXPECT_NEAR(measured(shift, false).of("eigen_gap", 0, 0), 0.0, 1e-12);
}

TEST(Eigen, IsTheSecondEigenvalueOfEachHead) {
  at::manual_seed(3);
  const at::Tensor p = at::softmax(at::randn({2, 3, 20, 20}, at::kDouble) * 2, -1);
  const Collected got = measured(p, false);
  for (int64_t s = 0; s < 2; ++s)
    for (int64_t h = 0; h < 3; ++h) {
      const at::Tensor moduli = std::get<0>(at::linalg_eigvals(p[s][h]).abs().sort(0, true));
      // Twenty steps span the space: only rounding is left, times the conditioning of the eigenvalue.
      EXPECT_NEAR(got.of("eigen_gap", s, static_cast<int>(h)), 1 - moduli[1].item<double>(), 1e-5);
    }
}

TEST(Eigen, SaysNothingOfCausalMatrices) {
  EXPECT_TRUE(measured(at::eye(4, at::kDouble).view({1, 1, 4, 4}), true).samples.empty());
}

}  // namespace
}  // namespace rankscope::testing
