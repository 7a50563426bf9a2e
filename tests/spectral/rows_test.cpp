#include "spectral/rows.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>

#include "stated_error.h"
#include "support/reference.h"

namespace rankscope {
namespace {

constexpr double kFloat = 0x1p-23, kDouble = 0x1p-52;
using Route = Spectrum (*)(const double*, int64_t, int64_t, double);

Spectrum run(Route route, const at::Tensor& x, double epsilon = kFloat) {
  const at::Tensor a = reference::wide(x);
  return route(a.data_ptr<double>(), a.size(0), a.size(1), epsilon);
}

TEST(Rows, BothRoutesKeepTheirStatedErrorOnOddShapes) {
  at::manual_seed(1);
  for (const auto& [m, n] : {std::pair{1, 1}, {1, 7}, {7, 1}, {2, 2}, {3, 50}, {50, 3}, {17, 17}, {64, 33}}) {
    const at::Tensor x = at::randn({m, n}, at::kDouble);
    expect_within_error(run(spectrum_exact, x), x);
    expect_within_error(run(spectrum_gram, x), x);
  }
}

TEST(Rows, TheGramRouteKeepsItsErrorWhenSingularValuesFallOverManyDecades) {
  at::manual_seed(2);
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({20, 20}, at::kDouble)));
  const at::Tensor p = std::get<0>(at::linalg_qr(at::randn({40, 20}, at::kDouble)));
  const at::Tensor s = at::pow(10.0, -at::arange(20, at::kDouble));
  expect_within_error(run(spectrum_gram, at::mm(q * s, p.t())), at::mm(q * s, p.t()));
}

TEST(Rows, RepeatedSingularValuesStayEqual) {
  at::manual_seed(3);
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({24, 24}, at::kDouble))) * 3.0;
  for (const Route route : {spectrum_exact, spectrum_gram})
    for (const double v : run(route, q).sigma) EXPECT_NEAR(v, 3.0, 3e-14);
}

TEST(Rows, ZeroHasAZeroSpectrumByEveryRoute) {
  for (const Route route : {spectrum_exact, spectrum_gram, spectrum_of}) {
    const Spectrum s = run(route, at::zeros({4, 6}));
    EXPECT_EQ(s.sigma, std::vector<double>(4, 0.0));
    EXPECT_EQ(effective_rank(s), 0);
  }
}

TEST(Rows, RankOneIsRankOneToRounding) {
  at::manual_seed(4);
  const at::Tensor x = at::ones({30, 1}, at::kDouble).mm(at::randn({1, 50}, at::kDouble));
  EXPECT_NEAR(effective_rank(run(spectrum_exact, x)), 1, 1e-11);
  EXPECT_NEAR(effective_rank(run(spectrum_gram, x)), 1, 1e-5);
  EXPECT_EQ(numerical_rank(run(spectrum_gram, x)).rank, 1);
}

TEST(Rows, AnEntryThatIsNotFiniteGivesNanInsteadOfATrap) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    at::Tensor x = at::ones({3, 4}, at::kDouble);
    x[1][2] = bad;
    for (const Route route : {spectrum_exact, spectrum_gram}) {
      EXPECT_TRUE(std::isnan(effective_rank(run(route, x))));
      EXPECT_TRUE(std::isnan(numerical_rank(run(route, x)).rank));
    }
  }
}

TEST(Rows, TheRouteIsChosenByTheToleranceOfTheData) {
  const at::Tensor x = at::eye(12, at::kDouble);
  EXPECT_EQ(run(spectrum_of, x, kFloat).route, "gram");
  EXPECT_EQ(run(spectrum_of, x, kDouble).route, "exact");
  EXPECT_GT(run(spectrum_of, x, kFloat).error, 0);
}

TEST(Rows, NumericalRankAtFloatToleranceIsTheSameByBothRoutes) {
  at::manual_seed(5);
  for (const double small : {1e-4, 1e-6, 1e-7}) {
    const at::Tensor x = at::diag(at::tensor({1.0, 0.5, small}, at::kDouble));
    const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({3, 3}, at::kDouble)));
    EXPECT_EQ(numerical_rank(run(spectrum_gram, q.mm(x))).rank,
              numerical_rank(run(spectrum_exact, q.mm(x))).rank);
  }
}

class TokenSpectraOf : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(TokenSpectraOf, PlainAndCenteredMatchTheReferenceByBothRoutes) {
  at::manual_seed(6);
  const auto [m, n] = GetParam();
  for (const double offset : {0.0, 3.0, 1e4}) {
    const at::Tensor x = at::randn({m, n}, at::kDouble) + offset * at::randn({1, n}, at::kDouble);
    const at::Tensor r = reference::centered(x), mean = x.mean(0);
    for (const double epsilon : {kFloat, kDouble}) {
      const TokenSpectra s = token_spectra(r.data_ptr<double>(), mean.data_ptr<double>(), m, n, epsilon);
      EXPECT_EQ(s.plain.route, epsilon == kFloat ? "gram" : "exact");
      expect_within_error(s.plain, x);
      expect_within_error(s.centered, r);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, TokenSpectraOf,
                         ::testing::Values(std::pair{2, 9}, std::pair{9, 2}, std::pair{16, 16},
                                           std::pair{30, 45}));

TEST(TokenSpectra, NearlyAlikeTokensKeepAllDigitsOfTheirDifferences) {
  // The residual is 1e-9 of the tokens: the Gram matrix of X has no digit left of it.
  at::manual_seed(7);
  const at::Tensor r = reference::centered(at::randn({10, 30}, at::kDouble)) * 1e-9,
                   mean = at::randn({30}, at::kDouble);
  const TokenSpectra s = token_spectra(r.data_ptr<double>(), mean.data_ptr<double>(), 10, 30, kFloat);
  EXPECT_NEAR(effective_rank(s.centered), reference::effective_rank(reference::sigma(r)), 1e-5);
  EXPECT_NEAR(effective_rank(s.plain), 1, 1e-5);
}

}  // namespace
}  // namespace rankscope
