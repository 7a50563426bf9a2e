// Normals by the million: their words, their values and their law.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/normals.h"
#include "kernels/normals_math.h"
#include "kernels/support.h"

namespace rankscope {
namespace {

std::vector<float> normals(Isa isa, uint64_t first, int64_t count, uint32_t step = 0) {
  std::vector<float> out(static_cast<size_t>(count));
  simd::table_of(isa).fill_normals(7, 3, step, first, count, out.data());
  return out;
}

/// Element e in double precision, from the words of base/philox.h.
double exact_normal(std::array<uint32_t, 4> w, uint64_t element) {
  const auto uniform = [](uint32_t word) { return (word + 0.5) * 0x1p-32; };
  const size_t pair = element % 4 / 2 * 2;
  const double radius = std::sqrt(-2 * std::log(uniform(w[pair]))),
               angle = 2 * std::numbers::pi * uniform(w[pair + 1]);
  return radius * (element % 2 ? std::sin(angle) : std::cos(angle));
}

TEST(Normals, CountersGiveTheWordsOfPhilox) {
  for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{0xFFFFFFFF}, uint64_t{0x123456789ABCDEF}}) {
    const PhiloxWords w = philox_words(0xFEDCBA9876543210, 5, 9, index);
    const std::array<uint32_t, 4> expected = Philox{0xFEDCBA9876543210, 5, 9}.words(index);
    EXPECT_EQ((std::array<uint32_t, 4>{w.w0, w.w1, w.w2, w.w3}), expected);
  }
}

TEST(Normals, AreBoxMullerOfTheirWords) {
  // The second stretch crosses the place where the counter's upper word begins to count.
  for (const uint64_t first : {uint64_t{0}, (uint64_t{1} << 34) - 5000})
    for (const Isa isa : available_isas()) {
      const std::vector<float> x = normals(isa, first, 200'000, 21);
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const uint64_t element = first + i;
        worst = std::max(worst, std::fabs(x[i] - exact_normal(Philox{7, 3, 21}.words(element / 4), element)));
      }
      EXPECT_LT(worst, 2e-6) << isa_name(isa);
    }
}

TEST(Normals, TheEndsOfTheUniformsAreExactToo) {
  const std::vector<uint32_t> edges = {0,          1,          2,          0xFFFF,     0x10000,
                                       0x1FFFFFFF, 0x20000000, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF,
                                       0x80000000, 0xB504F333, 0xB504F334, 0xBFFFFFFF, 0xC0000000,
                                       0xFFFFFF7F, 0xFFFFFF80, 0xFFFFFFFE, 0xFFFFFFFF};
  for (const uint32_t radius : edges)
    for (const uint32_t angle : edges) {
      const Normals4 n = box_muller({radius, angle, angle, radius});
      const std::array<uint32_t, 4> w = {radius, angle, angle, radius};
      EXPECT_NEAR(n.n0, exact_normal(w, 0), 2e-6) << radius << " " << angle;
      EXPECT_NEAR(n.n1, exact_normal(w, 1), 2e-6) << radius << " " << angle;
      EXPECT_NEAR(n.n2, exact_normal(w, 2), 2e-6) << radius << " " << angle;
      EXPECT_NEAR(n.n3, exact_normal(w, 3), 2e-6) << radius << " " << angle;
    }
}

TEST(Normals, AreTheSameForEverySplitIntoCalls) {
  for (const Isa isa : available_isas()) {
    const std::vector<float> whole = normals(isa, 2, 3000);
    for (const int64_t piece : {1, 3, 255, 256, 257, 1024}) {
      std::vector<float> joined;
      for (int64_t at = 0; at < 3000; at += piece) {
        const std::vector<float> part =
            normals(isa, static_cast<uint64_t>(2 + at), std::min<int64_t>(piece, 3000 - at));
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, whole) << isa_name(isa) << ", pieces of " << piece;
    }
    EXPECT_TRUE(normals(isa, 5, 0).empty());
  }
}

TEST(Normals, HaveTheMomentsAndTheLawOfTheNormal) {
  constexpr int64_t count = 1 << 20;
  const double n = count;
  std::vector<float> x(count);
  fill_normals(1, 2, 3, 0, count, x.data());
  double moment[5] = {};
  for (const double e : x)
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(e, k) / n;
  // Five standard errors: the k-th moment varies by E x^2k - (E x^k)^2 over n.
  EXPECT_NEAR(moment[1], 0, 5 * std::sqrt(1 / n));
  EXPECT_NEAR(moment[2], 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(moment[3], 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(moment[4], 3, 5 * std::sqrt(96 / n));

  double across = 0;  // neighbours share a radius; they must not share more
  for (size_t i = 0; i + 1 < x.size(); i += 2) across += x[i] * x[i + 1] / (n / 2);
  EXPECT_NEAR(across, 0, 5 * std::sqrt(2 / n));

  std::sort(x.begin(), x.end());
  double gap = 0;  // Kolmogorov-Smirnov: beyond 1.95 / sqrt(n) once in a thousand
  for (size_t i = 0; i < x.size(); ++i) {
    const double law = 0.5 * std::erfc(-x[i] / std::numbers::sqrt2);
    gap = std::max(
        {gap, std::fabs(law - static_cast<double>(i) / n), std::fabs(law - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(gap, 1.95 / std::sqrt(n));
}

}  // namespace
}  // namespace rankscope
