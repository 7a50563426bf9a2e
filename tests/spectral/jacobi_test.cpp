// The schedule and the arithmetic of a CUDA block, walked on the host, against LAPACK in double precision.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <set>

#include "hard_matrices.h"
#include "kernels/cuda/spectra.h"
#include "kernels/jacobi_math.h"
#include "support/matrix_shapes.h"
#include "support/reference.h"

namespace rankscope {
namespace {

constexpr int kLanes = 32;

struct Found {
  std::vector<double> sigma;  // descending
  double norm = 0;
  bool failed = false;
};

/// What a block keeps: columns of H A, or of its transpose where that is the taller.
struct Block {
  int rows, cols;
  bool wide;
  std::vector<float> columns;

  explicit Block(const at::Tensor& x) {
    const int m = static_cast<int>(x.size(0)), n = static_cast<int>(x.size(1));
    const at::Tensor a = x.to(at::kDouble).contiguous(), mean = a.mean(0);
    const double *from = a.data_ptr<double>(), *means = mean.data_ptr<double>();
    wide = m < n;
    rows = std::max(m, n), cols = std::min(m, n);
    columns.resize(static_cast<size_t>(rows) * static_cast<size_t>(cols));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        column(wide ? i : j)[wide ? j : i] = jacobi::reflected(i, m, from[i * n + j], from[j], means[j]);
  }

  float* column(int j) { return columns.data() + static_cast<ptrdiff_t>(j) * rows; }

  /// A warp's sum: each lane every 32nd row, then neighbours ever closer.
  float dot(const float* p, const float* q, int first) const {
    float lanes[kLanes] = {};
    for (int r = first; r < rows; ++r) lanes[r % kLanes] = fmaf(p[r], q[r], lanes[r % kLanes]);
    for (int step = kLanes / 2; step > 0; step /= 2)
      for (int lane = 0; lane < step; ++lane) lanes[lane] += lanes[lane + step];
    return lanes[0];
  }

  bool sweep(int first_row, int first_column) {
    const int seats = cols + cols % 2;
    const float most = jacobi::tolerance(rows);
    bool turned = false;
    for (int round = 0; round + 1 < seats; ++round)
      for (int table = 0; table < seats / 2; ++table) {
        const auto [p, q] = jacobi::meeting(round, table, seats);
        if (p < first_column || q >= cols) continue;
        float *a = column(p), *b = column(q);
        const jacobi::Turn turn =
            jacobi::turn_of(dot(a, a, first_row), dot(b, b, first_row), dot(a, b, first_row), most);
        if (!turn.needed) continue;
        for (int r = 0; r < rows; ++r) jacobi::apply(turn, a[r], b[r]);
        turned = true;
      }
    return turned;
  }

  std::vector<double> norms(int first_row, int first_column) {
    std::vector<double> out;
    for (int j = first_column; j < cols; ++j) {
      double sum = 0;
      for (int r = first_row; r < rows; ++r) sum += static_cast<double>(column(j)[r]) * column(j)[r];
      out.push_back(std::sqrt(sum));
    }
    std::sort(out.begin(), out.end(), std::greater<>());
    return out;
  }
};

bool make_orthogonal(Block& block, int first_row, int first_column) {
  for (int i = 0; i < jacobi::kMostSweeps; ++i)
    if (!block.sweep(first_row, first_column)) return true;
  return false;
}

Found emulate(const at::Tensor& x) {
  Block block(x);
  Found found;
  const int first_row = block.wide ? 0 : 1, first_column = block.wide ? 1 : 0;
  const bool rest = make_orthogonal(block, first_row, first_column);
  const std::vector<double> centered = block.norms(first_row, first_column);
  found.norm = centered.empty() ? 0 : centered[0];
  found.failed = !make_orthogonal(block, 0, 0) || !rest;
  found.sigma = block.norms(0, 0);
  return found;
}

void expect_within_error(const at::Tensor& x, const std::string& what) {
  const double error = cuda::spectra_error(x.size(1), x.size(2));
  for (int64_t i = 0; i < x.size(0); ++i) {
    const at::Tensor a = x[i].to(at::kFloat);
    const Found found = emulate(a);
    const std::vector<double> exact = reference::sigma(a),
                              centered = reference::sigma(reference::centered(a));
    EXPECT_FALSE(found.failed) << what << " " << a.sizes();
    double worst = 0;
    for (size_t k = 0; k < exact.size(); ++k) worst = std::max(worst, std::fabs(found.sigma[k] - exact[k]));
    EXPECT_LE(worst, error * exact[0]) << what << " " << a.sizes() << " matrix " << i;
    // The reference itself knows the centred norm to a rounding of the whole.
    EXPECT_NEAR(found.norm, centered[0], error * centered[0] + 1e-15 * exact[0]) << what << " " << a.sizes();
  }
}

TEST(Jacobi, EveryTwoColumnsMeetOnceInASweep) {
  for (const int seats : {2, 4, 6, 10, 128}) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round + 1 < seats; ++round) {
      std::set<int> seated;
      for (int table = 0; table < seats / 2; ++table) {
        const auto [p, q] = jacobi::meeting(round, table, seats);
        EXPECT_LT(p, q);
        EXPECT_TRUE(met.insert({p, q}).second);
        EXPECT_TRUE(seated.insert(p).second && seated.insert(q).second);
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(seats * (seats - 1) / 2));
  }
}

TEST(Jacobi, ATurnMakesItsPairOrthogonalAndKeepsItsLengths) {
  at::manual_seed(9);
  for (const double scale : {1e-12, 1e-6, 1.0, 1e6}) {
    const at::Tensor x = at::randn({2, 3});
    x[1].mul_(scale);
    float* p = x.data_ptr<float>();
    const auto dot = [](const float* a, const float* b) {
      return static_cast<double>(a[0]) * b[0] + static_cast<double>(a[1]) * b[1] +
             static_cast<double>(a[2]) * b[2];
    };
    const double before = dot(p, p) + dot(p + 3, p + 3);
    const jacobi::Turn turn =
        jacobi::turn_of(static_cast<float>(dot(p, p)), static_cast<float>(dot(p + 3, p + 3)),
                        static_cast<float>(dot(p, p + 3)), jacobi::tolerance(3));
    ASSERT_TRUE(turn.needed);
    for (int i = 0; i < 3; ++i) jacobi::apply(turn, p[i], p[3 + i]);
    // A rounding of the angle and two of each entry.
    EXPECT_LE(std::fabs(dot(p, p + 3)), 0x1p-21 * std::sqrt(dot(p, p) * dot(p + 3, p + 3))) << scale;
    EXPECT_NEAR(dot(p, p) + dot(p + 3, p + 3), before, 0x1p-21 * before) << scale;
  }
}

TEST(Jacobi, NoTurnForNumbersThatAreNoneOrForNothing) {
  EXPECT_FALSE(jacobi::turn_of(NAN, 1, NAN, 0.0f).needed);
  EXPECT_FALSE(jacobi::turn_of(INFINITY, 1, INFINITY, 1e-6f).needed);
  EXPECT_FALSE(jacobi::turn_of(0, 1, 0, 0.0f).needed);
  EXPECT_FALSE(jacobi::turn_of(0x1p-120f, 1, 0x1p-60f, 1e-6f).needed);
}

TEST(Jacobi, RandomMatricesOfEveryShape) {
  at::manual_seed(1);
  for (const auto& [m, n] : test::matrix_shapes())
    expect_within_error(at::randn({m > 100 ? 1 : 3, m, n}), "random");
}

TEST(Jacobi, AttentionFromUniformToSharp) {
  at::manual_seed(2);
  for (const int64_t T : {5, 32, 65}) {
    const at::Tensor scores = at::randn({8, T, T}) * at::pow(4.0, at::arange(-4, 4)).view({8, 1, 1});
    expect_within_error(at::softmax(scores, -1), "attention");
    const at::Tensor hidden = at::ones({T, T}).triu(1).to(at::kBool);
    expect_within_error(at::softmax(scores.masked_fill(hidden, -INFINITY), -1), "causal");
  }
  expect_within_error(at::softmax(at::randn({1, 128, 128}), -1), "attention");
}

TEST(Jacobi, MatricesThatLackRank) {
  at::manual_seed(3);
  for (const auto& [what, x] : matrices_that_lack_rank()) expect_within_error(x, what);
}

TEST(Jacobi, SingularValuesOverManyDecades) {
  at::manual_seed(4);
  for (const auto& [what, x] : singular_values_over_many_decades()) expect_within_error(x, what);
}

TEST(Jacobi, MatricesThatAreKnown) {
  at::manual_seed(5);
  for (const auto& [what, x] : matrices_that_are_known()) expect_within_error(x, what);
}

TEST(Jacobi, NearlyEqualRowsKeepTheDigitsOfTheirDifferences) {
  at::manual_seed(6);
  for (const auto& [m, n] : {std::pair{40, 64}, {64, 40}})
    for (const double spread : {1e-2, 1e-4, 1e-6})
      expect_within_error(at::rand({1, 1, n}) + 1 + spread * at::randn({1, m, n}), "alike");
}

}  // namespace
}  // namespace rankscope
