// The loss beside its formula.
#include "kernels/cpu/squared_error.h"

#include <gtest/gtest.h>

#include "kernels/support.h"

namespace rankscope {
namespace {

TEST(SquaredError, IsTheFormulaAndSoIsItsGradient) {
  for (const int64_t width : {1, 5, 16, 64, 67})
    for (const int64_t rows : {0, 1, 6})
      for (const Isa isa : available_isas()) {
        const int64_t row = width + 2;
        const std::vector<float> answer = rounded<float>(random_normals(0, rows * row)),
                                 target = rounded<float>(random_normals(1, rows * row));
        std::vector<float> gradient(answer.size(), -7.0f);
        const float weight = 0.375f;
        const simd::TableOf<float>& table = simd::table_of(isa);
        const double loss = table.squared_error(
            {rows, width, weight, answer.data(), target.data(), gradient.data(), row, row, row});
        double exact = 0;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t c = 0; c < row; ++c) {
            const auto at = static_cast<size_t>(i * row + c);
            if (c >= width) {
              EXPECT_EQ(gradient[at], -7.0f) << "behind the row";
              continue;
            }
            const double miss = double{answer[at]} - double{target[at]};
            exact += weight * miss * miss;
            EXPECT_NEAR(gradient[at], 2 * weight * miss, 1e-7 * std::fabs(miss))
                << "one rounding of the difference";
          }
        // Positive terms: each passes through a rounding per addition in its lane at most, and three more.
        EXPECT_NEAR(loss, exact, 6e-8 * (static_cast<double>(width) + 3) * exact);
        EXPECT_EQ(
            table.squared_error({rows, width, weight, answer.data(), target.data(), nullptr, row, row, 0}),
            loss);
      }
}

TEST(SquaredError, ThePublicCallWorksInBothPrecisions) {
  // Known answer: (1, 2) - (3, 5) misses by (2, 3).
  const double answer[] = {1, 2}, target[] = {3, 5};
  double gradient[2];
  EXPECT_EQ(squared_error(1, 2, 0.5, answer, 2, target, 2, gradient, 2), 6.5);
  EXPECT_EQ(gradient[0], -2);
  EXPECT_EQ(gradient[1], -3);
  const float narrow_answer[] = {1, 2}, narrow_target[] = {3, 5};
  EXPECT_EQ(squared_error<float>(2, 1, 0.5f, narrow_answer, 1, narrow_target, 1, nullptr, 0), 6.5);
}

}  // namespace
}  // namespace rankscope
