// Against matrices whose eigenvalues are known: a diagonal, turned by reflections.
#include "kernels/cuda/tridiagonal.h"

#include <algorithm>

#include "device.h"

namespace rankscope {
namespace {

using Values = std::vector<double>;

class CudaTridiagonal : public OnDevice {};

/// H G H for the reflection H across a random direction.
void reflect(Values& g, int64_t n, uint64_t seed) {
  const Philox random{seed, 1, 0};
  Values v(n);
  double square = 0;
  for (int64_t i = 0; i < n; ++i) v[i] = random.uniform(i) - 0.5, square += v[i] * v[i];
  const auto from_left = [&](bool transposed) {
    const auto at = [&](int64_t i, int64_t j) -> double& { return transposed ? g[j * n + i] : g[i * n + j]; };
    for (int64_t j = 0; j < n; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < n; ++i) dot += v[i] * at(i, j);
      for (int64_t i = 0; i < n; ++i) at(i, j) -= 2 * dot / square * v[i];
    }
  };
  from_left(false);
  from_left(true);
}

/// A symmetric matrix with these eigenvalues.
Values with_eigenvalues(const Values& values, uint64_t seed) {
  const auto n = static_cast<int64_t>(values.size());
  Values g(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) g[i * n + i] = values[i];
  for (uint64_t turn = 0; turn < 3; ++turn) reflect(g, n, 10 * seed + turn);
  return g;
}

struct Part {
  int64_t first = 0, wanted = 0;
  Values offset = {};
};

Values eigenvalues(const Values& matrices, int64_t count, int64_t n, const Part& part) {
  const DeviceBuffer<double> g(matrices), d(Values(count * n, NAN)), e(Values(count * n, NAN)),
      values(Values(count * part.wanted, NAN)), offset(part.offset);
  cuda::tridiagonalise(count, n, g.data(), d.data(), e.data(), nullptr);
  cuda::tridiagonal_eigenvalues({count, n, part.first, part.wanted}, d.data(), e.data(),
                                part.offset.empty() ? nullptr : offset.data(), values.data(), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return values.values();
}

double largest(const Values& x) {
  double most = 0;
  for (const double v : x) most = std::max(most, std::fabs(v));
  return most;
}

// Making the matrix costs three reflections from both sides and the reduction n of them; each leaves a few
// roundings of the norm at random signs, so sqrt(n) of them add up. 32 is four times the worst that was seen.
double bound(int64_t n, double norm) {
  return 32 * std::sqrt(static_cast<double>(n)) * std::numeric_limits<double>::epsilon() * norm;
}

Values graded(int64_t n) {  // from 1 down to 1e-12
  Values v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = std::pow(10.0, -12.0 * i / std::max<int64_t>(1, n - 1));
  return v;
}
Values clustered(int64_t n) {  // three values, one of them zero
  Values v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = i < n / 4 ? 5.0 : i < n / 2 ? 1.0 : 0.0;
  return v;
}
Values signed_values(int64_t n) {
  Values v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<double>(n - 2 * i) * 1e3;
  return v;
}

TEST_F(CudaTridiagonal, FindsKnownEigenvaluesAtEverySizeAndSeam) {
  for (const int64_t n :
       {1, 2, 3, 4, 31, 32, 33, 129, 215, 216, 217, 224, 257, 512, 513, 540, 541, 1025, 1100})
    for (const auto& make : {graded, clustered, signed_values}) {
      const Values truth = make(n), found = eigenvalues(with_eigenvalues(truth, n), 1, n, {0, n});
      for (int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(found[i], truth[i], bound(n, largest(truth))) << "size " << n << ", value " << i;
    }
}

TEST_F(CudaTridiagonal, AMatrixHasTheSameEigenvaluesAloneAndInCompany) {
  for (const int64_t n : {65, 300}) {
    Values all, alone;
    for (uint64_t k = 0; k < 5; ++k) {
      const Values g = with_eigenvalues(k % 2 == 0 ? graded(n) : clustered(n), k);
      all.insert(all.end(), g.begin(), g.end());
      const Values one = eigenvalues(g, 1, n, {0, n});
      alone.insert(alone.end(), one.begin(), one.end());
    }
    EXPECT_EQ(eigenvalues(all, 5, n, {0, n}), alone);
  }
}

TEST_F(CudaTridiagonal, ThePartBehindTheFirstRowIsThatOfTheMatrixWithoutIt) {
  for (const int64_t n : {33, 290}) {
    const Values g = with_eigenvalues(signed_values(n), 3);
    Values inner((n - 1) * (n - 1));
    for (int64_t i = 1; i < n; ++i)
      for (int64_t j = 1; j < n; ++j) inner[(i - 1) * (n - 1) + j - 1] = g[i * n + j];
    const Values part = eigenvalues(g, 1, n, {1, n - 1}), alone = eigenvalues(inner, 1, n - 1, {0, n - 1});
    for (int64_t i = 0; i + 1 < n; ++i) ASSERT_NEAR(part[i], alone[i], bound(n, largest(alone)));

    // An offset is added along the first row's direction.
    Values direction(n - 1);
    double square = 0;
    for (int64_t j = 1; j < n; ++j) direction[j - 1] = g[j], square += g[j] * g[j];
    const double offset = 7e3;
    for (int64_t i = 0; i + 1 < n; ++i)
      for (int64_t j = 0; j + 1 < n; ++j)
        inner[i * (n - 1) + j] += offset * direction[i] * direction[j] / square;
    const Values moved = eigenvalues(g, 1, n, {1, n - 1, {offset}}),
                 added = eigenvalues(inner, 1, n - 1, {0, n - 1});
    for (int64_t i = 0; i + 1 < n; ++i) ASSERT_NEAR(moved[i], added[i], bound(n, largest(added)));
  }
}

TEST_F(CudaTridiagonal, OnlyTheLargestAreFoundWhereOnlyTheyAreWanted) {
  const Values g = with_eigenvalues(graded(100), 1), all = eigenvalues(g, 1, 100, {0, 100});
  EXPECT_EQ(eigenvalues(g, 1, 100, {0, 3}), Values(all.begin(), all.begin() + 3));
}

TEST_F(CudaTridiagonal, AnEntryThatIsNotFiniteSpoilsItsOwnMatrixAlone) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)})
    for (const int64_t n : {40, 230}) {
      const Values good = with_eigenvalues(graded(n), 2);
      Values all = good;
      all.insert(all.end(), good.begin(), good.end());
      all[n * n + 3 * n + 17] = bad;
      const Values found = eigenvalues(all, 2, n, {0, n}), alone = eigenvalues(good, 1, n, {0, n});
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), found.begin()));
      for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(std::isnan(found[n + i]));
    }
}

TEST_F(CudaTridiagonal, AMatrixOfZerosHasZeros) {
  EXPECT_EQ(largest(eigenvalues(Values(50 * 50, 0.0), 1, 50, {0, 50})), 0.0);
}

}  // namespace
}  // namespace rankscope
