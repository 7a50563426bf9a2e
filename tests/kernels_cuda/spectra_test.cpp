// Against a plain Jacobi in double precision, within the error that kernels/cuda/spectra.h states.
#include "kernels/cuda/spectra.h"

#include <algorithm>
#include <functional>

#include "device.h"
#include "support/matrix_shapes.h"

namespace rankscope {
namespace {

using Matrix = std::vector<float>;  // rows x cols, row by row

class CudaSpectra : public OnDevice {};

/// Row by row, pair by pair, until nothing is left to turn.
std::vector<double> exact_sigma(const std::vector<double>& a, int64_t m, int64_t n) {
  const bool wide = m < n;
  const int64_t rows = std::max(m, n), cols = std::min(m, n);
  std::vector<std::vector<double>> x(cols, std::vector<double>(rows));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) x[wide ? i : j][wide ? j : i] = a[i * n + j];
  const auto dot = [&](int64_t p, int64_t q) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += x[p][r] * x[q][r];
    return sum;
  };
  bool turned = true;
  for (int sweep = 0; turned && sweep < 100; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < cols; ++p)
      for (int64_t q = p + 1; q < cols; ++q) {
        const double pp = dot(p, p), qq = dot(q, q), pq = dot(p, q);
        if (!(std::fabs(pq) > 1e-14 * std::sqrt(pp * qq))) continue;
        const double angle = 0.5 * std::atan2(2 * pq, pp - qq), c = std::cos(angle), s = std::sin(angle);
        for (int64_t r = 0; r < rows; ++r) {
          const double was = x[p][r];
          x[p][r] = c * was + s * x[q][r];
          x[q][r] = c * x[q][r] - s * was;
        }
        turned = true;
      }
  }
  std::vector<double> sigma;
  for (int64_t j = 0; j < cols; ++j) sigma.push_back(std::sqrt(dot(j, j)));
  std::sort(sigma.begin(), sigma.end(), std::greater<>());
  return sigma;
}

std::vector<double> without_mean_row(std::vector<double> a, int64_t m, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double mean = 0;
    for (int64_t i = 0; i < m; ++i) mean += a[i * n + j] / static_cast<double>(m);
    for (int64_t i = 0; i < m; ++i) a[i * n + j] -= mean;
  }
  return a;
}

struct Found {
  std::vector<double> sigma, norms;
  std::vector<int32_t> sweeps;
};

Found run(const std::vector<Matrix>& batch, int64_t m, int64_t n) {
  std::vector<float> all;
  for (const Matrix& a : batch) all.insert(all.end(), a.begin(), a.end());
  const auto count = static_cast<int64_t>(batch.size());
  const DeviceBuffer<float> a(all);
  const DeviceBuffer<double> sigma(std::vector<double>(count * std::min(m, n), -1.0)),
      norms(std::vector<double>(count, -1.0));
  const DeviceBuffer<int32_t> sweeps(std::vector<int32_t>(count, -7));
  cuda::spectra({m, n, count}, a.data(), sigma.data(), norms.data(), sweeps.data(), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {sigma.values(), norms.values(), sweeps.values()};
}

void expect_within_error(const std::vector<Matrix>& batch, int64_t m, int64_t n, const char* what) {
  const double c = cuda::spectra_error(m, n);
  const int64_t each = std::min(m, n);
  const Found found = run(batch, m, n);
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::vector<double> a = widened(batch[i]), exact = exact_sigma(a, m, n),
                              centered = exact_sigma(without_mean_row(a, m, n), m, n);
    const double* sigma = found.sigma.data() + i * each;
    double worst = 0;
    for (int64_t k = 0; k < each; ++k) worst = std::max(worst, std::fabs(sigma[k] - exact[k]));
    EXPECT_LE(worst, c * exact[0]) << what << " " << m << "x" << n << " matrix " << i;
    EXPECT_TRUE(std::is_sorted(sigma, sigma + each, std::greater<>())) << what;
    // The reference itself knows the centred norm to a rounding of the whole.
    EXPECT_NEAR(found.norms[i], centered[0], c * centered[0] + 1e-14 * exact[0])
        << what << " " << m << "x" << n;
    EXPECT_GE(found.sweeps[i], 2) << what;
  }
}

Matrix attention(int64_t T, double sharpness, uint64_t seed) {
  Matrix a = random_floats(T * T, seed);
  for (int64_t i = 0; i < T; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < T; ++j) sum += std::exp(sharpness * a[i * T + j]);
    for (int64_t j = 0; j < T; ++j)
      a[i * T + j] = static_cast<float>(std::exp(sharpness * a[i * T + j]) / sum);
  }
  return a;
}

Matrix identity(int64_t n) {
  Matrix a(n * n);
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = 1;
  return a;
}

TEST_F(CudaSpectra, OfRandomMatricesOfEveryShape) {
  std::vector<test::Shape> shapes = test::matrix_shapes();
  shapes.insert(shapes.end(), {{97, 97}, {180, 161}, {199, 199}, {224, 224}});  // too slow on the host
  for (const auto& [m, n] : shapes)
    expect_within_error({random_floats(m * n, 1), random_floats(m * n, 2)}, m, n, "random");
}

TEST_F(CudaSpectra, OfAttentionFromUniformToSharp) {
  for (const int64_t T : {5, 32, 65, 128}) {
    std::vector<Matrix> batch;
    for (const double sharpness : {0.0, 0.01, 0.1, 0.5, 1.0, 4.0, 16.0, 64.0})
      batch.push_back(attention(T, sharpness, static_cast<uint64_t>(T)));
    expect_within_error(batch, T, T, "attention");
  }
}

TEST_F(CudaSpectra, OfMatricesThatLackRankOrAreGradedOrKnown) {
  const int64_t n = 60;
  std::vector<Matrix> batch(6, Matrix(n * n));
  const Matrix u = random_floats(2 * n, 3), random = random_floats(n * n, 4);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = i * n + j;
      batch[0][at] = u[i] * u[n + j];                                                      // of rank 1
      batch[1][at] = i < 30 ? random[at] : 0;                                              // zero rows
      batch[2][at] = j < 30 ? random[at] : 0;                                              // zero columns
      batch[3][at] = static_cast<float>(random[at] * std::pow(10.0, -i / 4.0));            // graded rows
      batch[4][at] = static_cast<float>(random[at] * std::pow(10.0, -(n - 1 - j) / 4.0));  // graded columns
      batch[5][at] = static_cast<float>(2 + 1e-5 * random[at]);                            // nearly alike
    }
  batch.insert(batch.end(), {identity(n), Matrix(n * n), Matrix(n * n, 1.0f)});
  expect_within_error(batch, n, n, "known");
  expect_within_error({identity(199)}, 199, 199, "identity");
}

TEST_F(CudaSpectra, DoNotDependOnTheScale) {
  for (const float scale : {1e-36f, 1e-20f, 1e18f, 3e36f}) {
    Matrix a = random_floats(40 * 40, 5);
    for (float& v : a) v *= scale;
    expect_within_error({a}, 40, 40, "scaled");
  }
}

TEST_F(CudaSpectra, AnEntryThatIsNotFiniteSpoilsItsOwnMatrixOnly) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{21, 21}, {21, 50}, {50, 21}})
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      std::vector<Matrix> batch;
      for (uint64_t seed : {1, 2, 3}) batch.push_back(random_floats(m * n, seed));
      const Found before = run(batch, m, n);
      batch[1].back() = static_cast<float>(bad);
      const Found after = run(batch, m, n);
      for (int64_t k = 0; k < 21; ++k) {
        EXPECT_EQ(after.sigma[k], before.sigma[k]);
        EXPECT_TRUE(std::isnan(after.sigma[21 + k]));
        EXPECT_EQ(after.sigma[42 + k], before.sigma[42 + k]);
      }
      EXPECT_TRUE(std::isnan(after.norms[1]));
      EXPECT_EQ(after.sweeps[1], 0);
      EXPECT_EQ(after.norms[2], before.norms[2]);
    }
}

TEST_F(CudaSpectra, AreTheSameAloneAndInCompany) {
  std::vector<Matrix> batch;
  for (uint64_t seed = 0; seed < 300; ++seed) batch.push_back(attention(37, 1.0, seed));
  const Found all = run(batch, 37, 37), alone = run({batch[171]}, 37, 37);
  EXPECT_TRUE(std::equal(alone.sigma.begin(), alone.sigma.end(), all.sigma.begin() + 171 * 37));
  EXPECT_EQ(alone.norms[0], all.norms[171]);
}

TEST_F(CudaSpectra, RefusesWhatDoesNotFitAndTakesAnEmptyBatch) {
  EXPECT_THROW(cuda::spectra({225, 2, 1}, nullptr, nullptr, nullptr, nullptr, nullptr), std::exception);
  EXPECT_THROW(cuda::spectra({0, 2, 1}, nullptr, nullptr, nullptr, nullptr, nullptr), std::exception);
  cuda::spectra({4, 4, 0}, nullptr, nullptr, nullptr, nullptr, nullptr);
}

}  // namespace
}  // namespace rankscope
