#include "theory/kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/harmonics.h"

namespace rankscope {
namespace {

using std::numbers::pi;

// A uniform direction; the probabilities below do not see its length.
std::vector<double> draw(const Philox& words, uint64_t& index, size_t d) {
  std::vector<double> v(d);
  for (double& c : v) c = words.normal(index++);
  return v;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> scaled(std::vector<double> v) {
  const double norm = std::sqrt(dot(v, v));
  for (double& c : v) c /= norm;
  return v;
}

// Deviation of a frequency, four times.
double four_deviations(int samples) { return 4 * std::sqrt(0.25 / samples); }

TEST(Kernel, HeadAgainstTargetIsThatOfTheSheet) {
  const double angles[] = {0, .5, 1, 1.4};
  const double three[] = {.68169, .66190, .60399, .53411}, eight[] = {.59689, .58548, .55327, .51689};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(HeadAgainstTarget(3).at(std::cos(angles[i])), three[i], 0.5e-5) << angles[i];
    EXPECT_NEAR(HeadAgainstTarget(8).at(std::cos(angles[i])), eight[i], 0.5e-5) << angles[i];
  }
  EXPECT_NEAR(HeadAgainstTarget(50).at(1), .53634, 0.5e-5);
}

TEST(Kernel, HeadAgainstTargetInThePlaneIsItsSeries) {
  std::vector<double> coefficients;  // N lambda^3, which falls as l^-3
  for (int64_t l = 1; l < 20'000; l += 2) coefficients.push_back(2 * std::pow(sign_eigenvalue(2, l), 3));
  for (const double angle : {0.0, 0.4, 1.3, 2.0, pi}) {
    EXPECT_NEAR(plane_head_against_target(angle), 0.5 + 0.5 * odd_series(2, coefficients, std::cos(angle)),
                1e-8);
    EXPECT_NEAR(HeadAgainstTarget(2).at(std::cos(angle)), plane_head_against_target(angle), 1e-12);
  }
}

TEST(Kernel, HeadsThatOpposeAreTheComplement) {
  const HeadAgainstTarget target(7);
  for (const double cosine : {0.0, 0.2, 0.9}) EXPECT_NEAR(target.at(cosine) + target.at(-cosine), 1, 1e-14);
  EXPECT_EQ(heads_agree(1, 1), 1);
  EXPECT_EQ(heads_agree(1, -1), 0);
  EXPECT_EQ(heads_agree(1 + 1e-12, 1), 1);
}

TEST(Kernel, ProbabilitiesAreThoseOfCounting) {
  constexpr size_t d = 4;
  constexpr int kSamples = 200'000;
  const Philox words{.seed = 13};
  uint64_t index = 0;
  const auto q1 = scaled(draw(words, index, d)), k1 = scaled(draw(words, index, d));
  const auto q2 = scaled(draw(words, index, d)), k2 = scaled(draw(words, index, d));
  int agree = 0, right = 0;
  for (int s = 0; s < kSamples; ++s) {
    const auto y = draw(words, index, d), w = draw(words, index, d);
    const bool first = dot(q1, y) * dot(k1, w) > 0, second = dot(q2, y) * dot(k2, w) > 0;
    agree += first == second;
    right += first == (dot(w, y) > 0);
  }
  EXPECT_NEAR(static_cast<double>(agree) / kSamples, heads_agree(dot(q1, q2), dot(k1, k2)),
              four_deviations(kSamples));
  EXPECT_NEAR(static_cast<double>(right) / kSamples, HeadAgainstTarget(d).at(dot(q1, k1)),
              four_deviations(kSamples));
}

}  // namespace
}  // namespace rankscope
