// Symmetric eigenvalues on every instruction set of this machine, beside LAPACK's.
#include "kernels/cpu/symmetric.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/entropy.h"
#include "kernels/support.h"

namespace rankscope {
namespace {

std::vector<double> ascending(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v;
}

std::vector<double> eigenvalues(const simd::Table& table, const at::Tensor& g) {
  const auto n = static_cast<size_t>(g.size(0));
  std::vector<double> d(n), e(n), values(n);
  table.tridiagonalise(g.size(0), g.data_ptr<double>(), d.data(), e.data());
  EXPECT_EQ(table.tridiagonal_eigenvalues(1, g.size(0), d.data(), e.data(), values.data()), 0u);
  return ascending(values);
}

void expect_matches(const at::Tensor& symmetric, const char* what) {
  const at::Tensor exact = at::linalg_eigvalsh(symmetric).contiguous();
  const double norm = exact.abs().max().item<double>();
  at::Tensor upper = symmetric.triu().contiguous();  // the lower triangle must not be read
  for (const Isa isa : available_isas()) {
    const std::vector<double> found = eigenvalues(simd::table_of(isa), upper);
    for (size_t i = 0; i < found.size(); ++i)  // both sides round every step
      EXPECT_NEAR(found[i], exact[static_cast<int64_t>(i)].item<double>(),
                  2 * 0x1p-52 * static_cast<double>(found.size()) * norm)
          << what << " " << isa_name(isa) << " " << found.size();
  }
}

at::Tensor random_symmetric(int64_t n) {
  const at::Tensor a = at::randn({n, n}, at::kDouble);
  return a + a.t();
}

TEST(Symmetric, EigenvaluesOfRandomMatricesOfEverySize) {
  at::manual_seed(1);
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 65, 128, 201})
    expect_matches(random_symmetric(n), "random");
}

TEST(Symmetric, EigenvaluesOfMatricesThatAreKnownOrLackRank) {
  at::manual_seed(2);
  const at::Tensor thin = at::randn({40, 3}, at::kDouble);
  expect_matches(at::eye(40, at::kDouble), "identity");
  expect_matches(at::zeros({40, 40}, at::kDouble), "zero");
  expect_matches(at::ones({40, 40}, at::kDouble), "ones");
  expect_matches(thin.mm(thin.t()), "rank 3");
  expect_matches(at::diag(at::pow(10.0, -at::arange(40, at::kDouble))), "falling diagonal");
  expect_matches(at::diag(at::arange(40, at::kDouble) - 20), "both signs");
  expect_matches(random_symmetric(40) * 1e-60, "tiny");
  expect_matches(random_symmetric(40) * 1e60, "large");
}

TEST(Symmetric, ATridiagonalMatrixIsTheSameAloneAndInCompanyAndWithZerosBehindIt) {
  at::manual_seed(3);
  constexpr int64_t n = 30, longer = 37;
  const at::Tensor d = at::randn({kTridiagonalGroup, n}, at::kDouble);
  at::Tensor e = at::rand({kTridiagonalGroup, n}, at::kDouble);
  e.select(1, n - 1).zero_();
  const at::Tensor tail = at::zeros({kTridiagonalGroup, longer - n}, at::kDouble);
  const at::Tensor padded_d = at::cat({d, tail}, 1), padded_e = at::cat({e, tail}, 1);
  for (const Isa isa : available_isas()) {
    const simd::Table& table = simd::table_of(isa);
    std::vector<double> together(kTridiagonalGroup * longer);
    EXPECT_EQ(table.tridiagonal_eigenvalues(kTridiagonalGroup, longer, padded_d.data_ptr<double>(),
                                            padded_e.data_ptr<double>(), together.data()),
              0u);
    for (int64_t i = 0; i < kTridiagonalGroup; ++i) {
      std::vector<double> alone(n);
      table.tridiagonal_eigenvalues(1, n, d.data_ptr<double>() + i * n, e.data_ptr<double>() + i * n,
                                    alone.data());
      EXPECT_EQ(alone, std::vector<double>(together.begin() + i * longer, together.begin() + i * longer + n));
    }
  }
}

TEST(RowEntropy, IsTheFormulaInDoublePrecision) {
  at::manual_seed(4);
  for (const int64_t n : {0, 1, 2, 7, 8, 15, 16, 17, 33, 128})
    for (const double sharpness : {0.0, 1.0, 30.0}) {
      const at::Tensor p = at::softmax(at::randn({n}) * sharpness, -1);
      double expected = 0;
      for (int64_t i = 0; i < n; ++i)
        if (const double v = p[i].item<double>(); v >= 0x1p-126) expected -= v * std::log(v);
      for (const Isa isa : available_isas())
        EXPECT_NEAR(simd::table_of(isa).row_entropy(p.data_ptr<float>(), n), expected,
                    1e-15 * (1 + expected));
    }
}

TEST(RowEntropy, OfOneKeyIsExactlyZeroAndWhatIsNoProbabilityIsSkipped) {
  const std::vector<float> one{0, 1, 0, -0.0f, 0x1p-140f}, odd{0.5f, NAN, -1, 0.5f};
  for (const Isa isa : available_isas()) {
    EXPECT_EQ(simd::table_of(isa).row_entropy(one.data(), 5), 0.0);
    EXPECT_NEAR(simd::table_of(isa).row_entropy(odd.data(), 4), std::log(2.0), 1e-15);
  }
}

}  // namespace
}  // namespace rankscope
