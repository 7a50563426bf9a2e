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
      const auto [values, vectors] = at::linalg_eig(p[s][h]);
      const int64_t second = std::get<1>(values.abs().sort(0, true))[1].item<int64_t>();
      // An eigenvalue moves by what is left of A v - lambda v, and by rounding (twenty steps of sums of
      // twenty terms, here and in linalg_eig), times its condition: the length of its left eigenvector where
      // the right one has length 1 and their product is 1.
      const double condition = at::linalg_vector_norm(at::linalg_inv(vectors)[second]).item<double>();
      const double residual = got.of("eigen_residual", s, static_cast<int>(h));
      EXPECT_LT(residual, 1e-6);  // where spectral_radius stops
      const double exact = 1 - values[second].abs().item<double>();
      EXPECT_NEAR(got.of("eigen_gap", s, static_cast<int>(h)), exact,
                  condition * (residual + 2 * 20 * 0x1p-53));
    }
}

TEST(Eigen, SaysNothingOfRowsThatSumToLessThanOne) {
  ModelSpec spec;
  spec.blocks.push_back(classic_block(NormPlace::pre, {NormKind::layer}, {}, ""));
  spec.blocks[0].attention().sinks = true;
  const Packed packed({4});
  const Packing packing = packed.packing();
  Seeing seeing(lens_named("eigen"), {spec, 0, 17, 1, 0.3});
  seeing.tile({at::full({1, 1, 4, 4}, 0.1, at::kDouble), {0, 0, 4}, false, 0, packing});
  EXPECT_TRUE(seeing.finish().samples.empty());
}

TEST(Eigen, SaysNothingOfCausalMatrices) {
  EXPECT_TRUE(measured(at::eye(4, at::kDouble).view({1, 1, 4, 4}), true).samples.empty());
}

}  // namespace
}  // namespace rankscope::testing
