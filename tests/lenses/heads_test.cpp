#include <gtest/gtest.h>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

Collected see_heads(const at::Tensor& z, const at::Tensor& W_O, const at::Tensor& x, const Packed& packed) {
  const Packing packing = packed.packing();
  Seeing seeing(lens_named("heads"));
  seeing.factored({z, W_O, x, packing});
  return seeing.finish();
}

TEST(Heads, MatchTheFormedOutputOfEverySampleAndHead) {
  at::manual_seed(1);
  const std::vector<int64_t> lengths{3, 1, 7};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor z = at::randn({11, 4, 5}).to(type), x = at::randn({11, 13}).to(type),
                     W_O = at::randn({13, 20}).to(type);
    const Collected got = see_heads(z, W_O, x, Packed(lengths));
    int64_t first = 0;
    for (size_t s = 0; s < lengths.size(); first += lengths[s++])
      for (int h = 0; h < 4; ++h) {
        const double expected = reference::head_output_rel(z.narrow(0, first, lengths[s]), W_O,
                                                           x.narrow(0, first, lengths[s]), h);
        EXPECT_NEAR(got.of("head_output_rel", static_cast<int64_t>(s), h), expected, 1e-12 * expected);
      }
  }
}

TEST(Heads, AHeadThatWritesNothingIsZero) {
  const Collected got = see_heads(at::zeros({4, 1, 2}), at::ones({3, 2}), at::ones({4, 3}), Packed({4}));
  EXPECT_EQ(got.of("head_output_rel", 0, 0), 0);
}

TEST(Heads, BesideAnEmptyStreamThereIsNoRatio) {
  EXPECT_TRUE(
      see_heads(at::ones({4, 1, 2}), at::ones({3, 2}), at::zeros({4, 3}), Packed({4})).samples.empty());
}

TEST(Heads, LaterBatchesUseTheSameWeights) {
  at::manual_seed(2);
  const at::Tensor z = at::randn({6, 2, 3}), x = at::randn({6, 5}), W_O = at::randn({5, 6});
  Seeing seeing(lens_named("heads"));
  for (int64_t s = 0; s < 2; ++s) {
    const Packed packed({3}, {}, s);
    const Packing packing = packed.packing();
    const at::Tensor zs = z.narrow(0, 3 * s, 3), xs = x.narrow(0, 3 * s, 3);
    seeing.factored({zs, W_O, xs, packing});
  }
  const Collected out = seeing.finish(), once = see_heads(z, W_O, x, Packed({3, 3}));
  for (int64_t s = 0; s < 2; ++s)
    for (int h = 0; h < 2; ++h)
      EXPECT_NEAR(out.of("head_output_rel", s, h), once.of("head_output_rel", s, h), 1e-14);
}

}  // namespace
}  // namespace rankscope::testing
