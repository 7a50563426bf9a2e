#include "ops/normals.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernels/cpu/normals.h"

namespace rankscope {
namespace {

at::Tensor longs(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

// The vector loops are within 2e-6 of the formula (tests/kernels/normals_test.cpp); the composition rounds a
// double once.
TEST(DrawNormals, TheCompositionIsTheKernelsNumbers) {
  const uint64_t seed = 0xFEDCBA9876543210;
  for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{6}, (int64_t{1} << 34) - 100}) {
    const int64_t count = 1001;
    at::Tensor expected = at::empty({count}, at::kFloat);
    fill_normals(seed, 3, 21, static_cast<uint64_t>(first), count, expected.data_ptr<float>());
    const at::Tensor plain =
        draw_normals_reference(longs({static_cast<int64_t>(seed)}), 3, longs({21}), first, count);
    ASSERT_EQ(plain.sizes(), (std::vector<int64_t>{1, count}));
    EXPECT_LT((plain[0] - expected).abs().max().item<double>(), 2e-6 + 4e-7) << first;
  }
}

TEST(DrawNormals, EachTrialOfAStackHasTheNumbersItHasAlone) {
  const at::Tensor stack = draw_normals(longs({5, -7, 9}), 1, longs({0, 4, 1000}), 50);
  EXPECT_TRUE(at::equal(stack[1], draw_normals(static_cast<uint64_t>(-7), 1, 4, 0, 50)));
  EXPECT_TRUE(at::equal(stack[2], draw_normals(9, 1, 1000, 0, 50)));
}

TEST(DrawNormals, PiecesAreTheWhole) {
  const at::Tensor whole = draw_normals(3, 0, 8, 0, 40);
  EXPECT_TRUE(at::equal(at::cat({draw_normals(3, 0, 8, 0, 13), draw_normals(3, 0, 8, 13, 27)}), whole));
  EXPECT_EQ(draw_normals(3, 0, 8, 0, 0).numel(), 0);
}

}  // namespace
}  // namespace rankscope
