// Bias and rectifier: nothing here rounds more than once, so results are compared bit by bit.
#include "kernels/cpu/bias_relu.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/support.h"

namespace rankscope {
namespace {

TEST(BiasRelu, IsThePlainLoopBitByBit) {
  for (const int64_t width : {1, 3, 16, 37, 64})
    for (const int64_t rows : {0, 1, 5})
      for (const Isa isa : available_isas()) {
        const simd::TableOf<float>& table = simd::table_of(isa);
        const int64_t row = width + 2;
        const std::vector<float> before = rounded<float>(random_normals(0, rows * row)),
                                 bias = rounded<float>(random_normals(1, width)),
                                 slopes = rounded<float>(random_normals(2, rows * row));
        std::vector<float> h = before, expected = before, dh = slopes, masked = slopes;
        std::vector<float> dbias(bias.size(), 0.5f), sums = dbias, all = dbias, plain_all = dbias;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t c = 0; c < width; ++c) {
            const auto at = static_cast<size_t>(i * row + c), column = static_cast<size_t>(c);
            expected[at] = std::max(before[at] + bias[column], 0.0f);
            if (expected[at] == 0) masked[at] = 0;
            sums[column] += masked[at];
            plain_all[column] += slopes[at];
          }
        table.bias_relu(rows, width, bias.data(), h.data(), row);
        EXPECT_EQ(h, expected) << isa_name(isa) << ", width " << width;
        table.bias_relu_backward(rows, width, h.data(), row, dh.data(), row, dbias.data());
        EXPECT_EQ(dh, masked);
        EXPECT_EQ(dbias, sums);
        dh = slopes;
        table.bias_relu_backward(rows, width, nullptr, 0, dh.data(), row, all.data());
        EXPECT_EQ(dh, slopes) << "without h nothing is cleared";
        EXPECT_EQ(all, plain_all);
        table.bias_relu_backward(rows, width, h.data(), row, dh.data(), row, nullptr);
        EXPECT_EQ(dh, masked);
      }
}

TEST(BiasRelu, ANaNIsNotHidden) {
  double h[] = {std::numeric_limits<double>::quiet_NaN(), -1, 2}, dh[] = {1, 1, 1}, dbias[] = {0, 0, 0};
  const double bias[] = {0, 0.5, 0.5};
  bias_relu(1, 3, bias, h, 3);
  EXPECT_TRUE(std::isnan(h[0]));
  EXPECT_EQ(h[1], 0);
  EXPECT_EQ(h[2], 2.5);
  bias_relu_backward(1, 3, h, 3, dh, 3, dbias);
  EXPECT_EQ(dbias[1], 0);
  EXPECT_EQ(dbias[2], 1);
}

}  // namespace
}  // namespace rankscope
