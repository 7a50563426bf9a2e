// The loops under the spectra, each beside its plain twin.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/select.h"
#include "support/reference.h"

namespace rankscope {
namespace {

using namespace kernels;

TEST(Lapack, SingularValuesMatchTheReference) {
  if (!lapack::have_lapack()) GTEST_SKIP() << "no LAPACK is linked";
  at::manual_seed(1);
  for (const auto& [m, n] : {std::pair{1, 1}, {3, 8}, {8, 3}, {40, 40}}) {
    at::Tensor x = at::randn({m, n}, at::kDouble);
    const std::vector<double> exact = reference::sigma(x);
    std::vector<double> s(exact.size());
    ASSERT_TRUE(lapack::singular_values(x.data_ptr<double>(), m, n, s.data()));
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(s[i], exact[i], 1e-15 * (m + n) * exact[0]);
  }
}

TEST(Lapack, ManyThreadsKeepTheirWorkspacesApart) {
  if (!lapack::have_lapack()) GTEST_SKIP() << "no LAPACK is linked";
  at::manual_seed(2);
  const at::Tensor x = at::randn({64, 24, 24}, at::kDouble);
  std::vector<double> s(64 * 24);
  parallel_over(64, [&](int64_t i) {
    at::Tensor a = x[i].clone();
    lapack::singular_values(a.data_ptr<double>(), 24, 24, s.data() + i * 24);
  });
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_NEAR(s[static_cast<size_t>(i) * 24], reference::sigma(x[i])[0], 1e-12);
}

TEST(Parallel, RunsEveryJobOnceAndCarriesTheErrorOut) {
  std::vector<int> seen(1000, 0);
  parallel_over(1000, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), 1000);
  EXPECT_THROW(parallel_over(50, [](int64_t i) { i == 31 ? throw std::runtime_error("x") : void(); }),
               std::runtime_error);
  parallel_over(0, [](int64_t) { FAIL(); });
}

TEST(RowKernels, MatchPlainLoopsAtEveryOddLength) {
  at::manual_seed(3);
  for (int64_t m : {1, 2, 3, 4, 5, 9})
    for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 13, 31}) {
      const at::Tensor a = at::randn({m, n}, at::kDouble), x = at::randn({n}, at::kDouble),
                       y = at::randn({m}, at::kDouble);
      at::Tensor ax = at::empty({m}, at::kDouble), aty = at::empty({n}, at::kDouble),
                 mean = at::empty_like(aty);
      multiply(a.data_ptr<double>(), m, n, x.data_ptr<double>(), ax.data_ptr<double>());
      multiply_transposed(a.data_ptr<double>(), m, n, y.data_ptr<double>(), aty.data_ptr<double>());
      row_mean(a.data_ptr<double>(), m, n, mean.data_ptr<double>());
      EXPECT_TRUE(at::allclose(ax, a.mv(x), 1e-13, 1e-13));
      EXPECT_TRUE(at::allclose(aty, a.t().mv(y), 1e-13, 1e-13));
      EXPECT_TRUE(at::allclose(mean, a.mean(0), 1e-13, 1e-14));
      EXPECT_NEAR(sum_squares(x.data_ptr<double>(), n), x.square().sum().item<double>(), 1e-13 * n);
    }
}

TEST(RowKernels, EntropySkipsZeros) {
  const std::vector<double> p{0.5, 0, 0.25, 0.25};
  const std::vector<float> f{0.5f, 0, 0.25f, 0.25f};
  EXPECT_NEAR(entropy(p.data(), 4), 1.5 * std::log(2.0), 1e-15);
  EXPECT_NEAR(entropy(f.data(), 4), 1.5 * std::log(2.0), 1e-15);
}

TEST(MedianMagnitude, IsTheSortedOneForFloatsAndDoubles) {
  at::manual_seed(4);
  for (const int64_t n : {1, 2, 3, 4, 101, 5000}) {
    for (const double scale : {1e-30, 1.0, 1e30}) {
      const at::Tensor x = (at::randn({n}) * scale).to(at::kFloat), w = x.to(at::kDouble);
      const at::Tensor a = w.abs();
      const double expected = reference::middle({a.data_ptr<double>(), a.data_ptr<double>() + n});
      EXPECT_EQ(median_magnitude(x.data_ptr<float>(), n), expected);
      EXPECT_EQ(median_magnitude(w.data_ptr<double>(), n), expected);
    }
  }
}

TEST(MedianMagnitude, TiesZerosSignsAndNan) {
  const std::vector<float> ties{-2, 2, 2, -0.0f, 0, 2, -2}, half{0, 0, 0, 1}, bad{1, NAN, 2};
  EXPECT_EQ(median_magnitude(ties.data(), 7), 2);
  EXPECT_EQ(median_magnitude(half.data(), 4), 0);
  EXPECT_TRUE(std::isnan(median_magnitude(bad.data(), 3)));
  EXPECT_TRUE(std::isnan(median_magnitude(bad.data(), 0)));
}

}  // namespace
}  // namespace rankscope
