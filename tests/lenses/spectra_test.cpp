#include <gtest/gtest.h>

#include <cmath>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

// Error of a sigma over sigma_1: float32 goes through the Gram matrix, in double, and loses half of its
// digits.
double sigma_error(const at::Tensor& x) {
  const double size = static_cast<double>(x.size(0) + x.size(1));
  return x.scalar_type() == at::kFloat ? std::sqrt(0x1p-52 * size) : 0x1p-52 * size;
}
double rank_error(const at::Tensor& x) {
  const std::vector<double> s = reference::sigma(x);
  return reference::effective_rank_tolerance(s, sigma_error(x) * s[0]);
}

void expect_matches(const Collected& got, const at::Tensor& x, int64_t sample, const std::string& tokens) {
  const std::vector<double> s = reference::sigma(x), c = reference::sigma(reference::centered(x));
  const bool gram = x.scalar_type() == at::kFloat;
  const double full = static_cast<double>(s.size()), relative = sigma_error(x);
  const double plain = reference::effective_rank(s), centered = reference::effective_rank(c);
  const double near_plain = reference::effective_rank_tolerance(s, relative * s[0]),
               near_centered = reference::effective_rank_tolerance(c, relative * c[0]);
  const auto of = [&](const char* metric) { return got.of(metric, sample, -1, tokens); };
  EXPECT_NEAR(of("effective_rank"), plain, near_plain);
  EXPECT_NEAR(of("effective_rank_rel"), plain / full, near_plain / full);
  EXPECT_NEAR(of("effective_rank_centered"), centered, near_centered);
  EXPECT_NEAR(of("effective_rank_centered_rel"), centered / full, near_centered / full);
  EXPECT_NEAR(of("stable_rank"), reference::stable_rank(s), 1e-12 * full);
  EXPECT_NEAR(of("stable_rank_gram"), reference::stable_rank_gram(s), 1e-12 * full);
  EXPECT_EQ(of("numerical_rank"),
            reference::numerical_rank(s, std::max(x.size(0), x.size(1)), gram ? 0x1p-23 : 0x1p-52));
}

TEST(Spectra, MatchTheReferenceOnOddShapes) {
  at::manual_seed(1);
  for (const auto& [T, d] : {std::pair{2, 1}, {2, 30}, {30, 2}, {17, 17}, {40, 13}, {13, 40}, {128, 64}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = (at::randn({T, d}) + 2.0 * at::randn({1, d})).to(type);
      expect_matches(see_residual("spectra", x), x, 0, "all");
    }
}

TEST(Spectra, OfTheIdentityAreTheDimension) {
  const Collected got = see_residual("spectra", at::eye(6));
  EXPECT_NEAR(got.of("effective_rank"), 6, 1e-13);
  EXPECT_NEAR(got.of("effective_rank_rel"), 1, 1e-14);
  // One direction is the mean's; its sigma is rounding.
  EXPECT_NEAR(got.of("effective_rank_centered"), 5, rank_error(at::eye(6) - 1.0 / 6));
  EXPECT_NEAR(got.of("stable_rank"), 6, 1e-13);
  EXPECT_EQ(got.of("numerical_rank"), 6);
}

TEST(Spectra, OfTokensAllAlikeAreOneAndCenteredZero) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({1, 20}).repeat({8, 1});
  const Collected got = see_residual("spectra", x);
  EXPECT_NEAR(got.of("effective_rank"), 1, rank_error(x));
  EXPECT_NEAR(got.of("stable_rank"), 1, 1e-13);
  EXPECT_NEAR(got.of("stable_rank_gram"), 1, 1e-13);
  EXPECT_EQ(got.of("numerical_rank"), 1);
  EXPECT_EQ(got.of("effective_rank_centered"), 0);
}

TEST(Spectra, OfOneTokenHaveRankOneAndNothingCentered) {
  const Collected got = see_residual("spectra", at::ones({1, 5}));
  EXPECT_NEAR(got.of("effective_rank"), 1, 1e-15);
  EXPECT_EQ(got.of("numerical_rank"), 1);
  EXPECT_FALSE(got.has("effective_rank_centered"));
}

TEST(Spectra, OfZeroAreZero) {
  const Collected got = see_residual("spectra", at::zeros({4, 5}));
  for (const char* metric : {"effective_rank", "effective_rank_rel", "stable_rank", "numerical_rank"})
    EXPECT_EQ(got.of(metric), 0) << metric;
}

TEST(Spectra, OrthogonalMapsChangeNothing) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({10, 14}, at::kDouble);
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({14, 14}, at::kDouble)));
  const Collected a = see_residual("spectra", x), b = see_residual("spectra", x.mm(q));
  for (const auto& [key, values] : a.samples)
    EXPECT_NEAR(b.samples.at(key).at(0), values.at(0), 1e-11 * values.at(0)) << std::get<0>(key);
}

TEST(Spectra, OfContentLeaveOutSpecialAndMassiveTokens) {
  at::manual_seed(4);
  at::Tensor x = at::randn({20, 12});
  x[3] *= 500.0;
  std::vector<uint8_t> flags(20, 1);
  flags[0] = flags[19] = 0;
  const Collected got = see_residual("spectra", x, Packed({20}, flags));
  expect_matches(got, x, 0, "all");
  expect_matches(got, reference::content_rows(x, flags), 0, "content");
}

TEST(Spectra, OfPackedSamplesAreThoseOfEachAlone) {
  at::manual_seed(5);
  const std::vector<int64_t> lengths{5, 2, 9};
  const at::Tensor x = at::randn({16, 7});
  const Collected packed = see_residual("spectra", x, Packed(lengths));
  int64_t first = 0;
  for (size_t s = 0; s < lengths.size(); first += lengths[s++])
    expect_matches(packed, x.narrow(0, first, lengths[s]), static_cast<int64_t>(s), "all");
}

}  // namespace
}  // namespace rankscope::testing
