// One matrix per lane, on every instruction set of this machine, held to LAPACK in double precision within
// the error that kernels/cpu/small_spectra.h states.
#include "kernels/cpu/small_spectra.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>
#include <functional>

#include "hard_matrices.h"
#include "kernels/support.h"
#include "support/reference.h"

namespace rankscope {
namespace {

struct Found {
  std::vector<std::vector<double>> sigma;  // descending
  std::vector<double> norm;
};

/// x [count, m, n], count at most a group.
Found run(Isa isa, const at::Tensor& x) {
  const at::Tensor a = x.to(at::kFloat).contiguous();
  const SmallSpectra shape{a.size(1), a.size(2), a.size(0)};
  const auto count = static_cast<size_t>(shape.count), each = static_cast<size_t>(shape.squares());
  std::vector<double> squares(count * each), norms(count);
  EXPECT_EQ(simd::table_of(isa).small_spectra(shape, a.data_ptr<float>(), squares.data(), norms.data()), 0u);
  Found found;
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> s(squares.begin() + static_cast<int64_t>(i * each),
                          squares.begin() + static_cast<int64_t>((i + 1) * each));
    for (double& v : s) v = v < 0 ? 0.0 : std::sqrt(v);
    std::sort(s.begin(), s.end(), std::greater<>());
    s.resize(static_cast<size_t>(std::min(shape.rows, shape.cols)));
    found.sigma.push_back(s);
    found.norm.push_back(std::sqrt(norms[i]));
  }
  return found;
}

/// Every matrix of x [count, m, n], whatever the count.
void expect_within_error(const at::Tensor& x, const std::string& what) {
  const double error = small_spectra_error(x.size(1), x.size(2));
  for (const Isa isa : available_isas()) {
    const int64_t group = simd::table_of(isa).small_spectra_group();
    for (int64_t first = 0; first < x.size(0); first += group) {
      const at::Tensor part = x.narrow(0, first, std::min(group, x.size(0) - first)).to(at::kFloat);
      const Found found = run(isa, part);
      for (int64_t i = 0; i < part.size(0); ++i) {
        const auto at = static_cast<size_t>(i);
        const std::vector<double> exact = reference::sigma(part[i]),
                                  centered = reference::sigma(reference::centered(part[i]));
        double worst = 0;
        for (size_t k = 0; k < exact.size(); ++k)
          worst = std::max(worst, std::fabs(found.sigma[at][k] - exact[k]));
        EXPECT_LE(worst, error * exact[0])
            << what << " " << isa_name(isa) << " " << part.sizes() << " matrix " << i;
        // The reference itself knows the centred norm to a rounding of the whole.
        EXPECT_NEAR(found.norm[at], centered[0], error * centered[0] + 1e-15 * exact[0]) << what;
      }
    }
  }
}

TEST(SmallSpectra, OfRandomMatricesOfEveryShape) {
  at::manual_seed(1);
  for (const auto& [m, n] :
       {std::pair{1, 1}, {1, 2},   {2, 1},     {2, 2},     {3, 7},     {7, 3},   {1, 40},
        {40, 1},         {8, 8},   {9, 9},     {16, 17},   {17, 16},   {33, 33}, {31, 64},
        {64, 31},        {63, 65}, {128, 128}, {127, 129}, {200, 200}, {199, 50}})
    expect_within_error(at::randn({m > 100 ? 3 : 5, m, n}), "random");
}

TEST(SmallSpectra, OfAttentionFromUniformToSharp) {
  at::manual_seed(2);
  for (const int64_t T : {5, 32, 100, 128}) {
    const at::Tensor sharpness = at::pow(2.0, at::arange(-8, 8)).view({16, 1, 1});
    const at::Tensor scores = at::randn({16, T, T}) * sharpness;
    expect_within_error(at::softmax(scores, -1), "attention");
    const at::Tensor hidden = at::ones({T, T}).triu(1).to(at::kBool);
    expect_within_error(at::softmax(scores.masked_fill(hidden, -INFINITY), -1), "causal");
  }
}

TEST(SmallSpectra, OfMatricesThatLackRank) {
  at::manual_seed(3);
  for (const auto& [what, x] : matrices_that_lack_rank()) expect_within_error(x, what);
}

TEST(SmallSpectra, OfSingularValuesOverManyDecades) {
  at::manual_seed(4);
  for (const auto& [what, x] : singular_values_over_many_decades()) expect_within_error(x, what);
}

TEST(SmallSpectra, OfMatricesThatAreKnown) {
  at::manual_seed(5);
  for (const auto& [what, x] : matrices_that_are_known()) expect_within_error(x, what);
}

TEST(SmallSpectra, OfNearlyEqualRowsKeepTheDigitsOfTheirDifferences) {
  at::manual_seed(6);
  const at::Tensor mean = at::rand({1, 1, 64}) + 1;
  for (const double spread : {1e-2, 1e-4, 1e-6})
    expect_within_error(mean + spread * at::randn({2, 40, 64}), "alike");
}

TEST(SmallSpectra, DoNotDependOnTheScale) {
  at::manual_seed(7);
  for (const double scale : {1e-36, 1e-20, 1e18, 3e36})
    expect_within_error(scale * at::randn({3, 40, 40}), "scaled");
}

TEST(SmallSpectra, AreTheSameAloneAndInCompany) {
  at::manual_seed(8);
  for (const Isa isa : available_isas()) {
    const at::Tensor x = at::softmax(at::randn({simd::table_of(isa).small_spectra_group(), 37, 37}), -1);
    const Found all = run(isa, x);
    for (int64_t i = 0; i < x.size(0); ++i) {
      const Found alone = run(isa, x.narrow(0, i, 1));
      EXPECT_EQ(alone.sigma[0], all.sigma[static_cast<size_t>(i)]);
      EXPECT_EQ(alone.norm[0], all.norm[static_cast<size_t>(i)]);
    }
  }
}

TEST(SmallSpectra, AnEntryThatIsNotFiniteSpoilsItsOwnMatrixOnly) {
  at::manual_seed(9);
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (const Isa isa : available_isas())
      for (const int64_t column : {0, 20}) {  // in a whole vector and in the rest
        at::Tensor x = at::randn({3, 21, 21});
        const Found before = run(isa, x);
        x[1][20][column] = bad;
        const Found after = run(isa, x);
        EXPECT_EQ(after.sigma[0], before.sigma[0]);
        EXPECT_EQ(after.sigma[2], before.sigma[2]);
        for (const double v : after.sigma[1]) EXPECT_TRUE(std::isnan(v));
        EXPECT_TRUE(std::isnan(after.norm[1]));
      }
}

}  // namespace
}  // namespace rankscope
