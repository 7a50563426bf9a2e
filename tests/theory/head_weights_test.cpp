#include "theory/head_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "base/stats.h"
#include "base/test_support.h"
#include "theory/kernel.h"
#include "theory/kernel_matrix.h"
#include "theory/kernel_tiles.h"
#include "theory/limits.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

double dot(const double* a, const double* b, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) sum += a[i] * b[i];
  return sum;
}

// C, entry by entry. The length of a unit vector is one: asin is steep there.
std::vector<double> plain_kernel(const Heads& heads) {
  const int64_t d = heads.d, n = heads.count;
  std::vector<double> c(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double query =
          i == j ? 1 : dot(&heads.q[static_cast<size_t>(i * d)], &heads.q[static_cast<size_t>(j * d)], d);
      const double key = dot(&heads.k[static_cast<size_t>(i * d)], &heads.k[static_cast<size_t>(j * d)], d);
      c[static_cast<size_t>(i * n + j)] = heads_agree(query, i == j && std::abs(key - 1) < 1e-12 ? 1 : key);
    }
  return c;
}

TEST(Heads, OfEveryConstructionAreWhatItsNameSays) {
  constexpr int64_t d = 6, count = 50;
  for (const char* name : {"gaussian", "uniform", "equal", "as-coded"}) {
    const Heads heads = random_heads(construction_named(name), d, count, 3);
    EXPECT_EQ(to_string(construction_named(name)), name);
    for (int64_t h = 0; h < count; ++h) {
      const double *q = &heads.q[static_cast<size_t>(h * d)], *k = &heads.k[static_cast<size_t>(h * d)];
      EXPECT_NEAR(dot(q, q, d), 1, 1e-14);
      EXPECT_NEAR(dot(q, k, d), heads.cosine[static_cast<size_t>(h)], 1e-14);
      if (std::string(name) == "as-coded") {
        EXPECT_LT(dot(k, k, d), 1);
      } else {
        EXPECT_NEAR(dot(k, k, d), 1, 1e-14);
      }
    }
  }
  const Error error = test::error_of([] { construction_named("gausian"); });
  EXPECT_EQ(error.message(), "there is no construction \"gausian\"");
}

TEST(Heads, AreKeptWhenMoreAreDrawn) {
  const Heads few = random_heads(Construction::uniform, 5, 3, 1),
              many = random_heads(Construction::uniform, 5, 9, 1);
  for (size_t i = 0; i < few.q.size(); ++i) {
    EXPECT_EQ(few.q[i], many.q[i]);
    EXPECT_EQ(few.k[i], many.k[i]);
  }
}

TEST(KernelTiles, ArcsinesAreThoseOfTheLibrary) {
  std::vector<double> x;
  for (int i = -512; i < 512; ++i) x.push_back(i / 512.0);
  x[5] = 1 + 1e-15, x[6] = -1 - 1e-15, x[7] = 0.5;
  std::vector<double> y = x;
  arcsines(y.data(), static_cast<int64_t>(y.size()));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], std::asin(std::clamp(x[i], -1.0, 1.0)), 5e-16) << x[i];
}

TEST(KernelMatrix, IsTheKernelOfEveryPair) {
  constexpr int64_t d = 5;
  for (const int64_t count : {1, 3, 300}) {  // below a tile, and over its edge
    const Heads heads = random_heads(Construction::as_coded, d, count, 7);
    const std::vector<double> c = plain_kernel(heads);
    const KernelMatrix kernel(heads, 1);
    for (int64_t j = 0; j < count; ++j) {
      std::vector<double> unit(static_cast<size_t>(count));
      unit[static_cast<size_t>(j)] = 1;
      const std::vector<double> column = kernel.multiply(unit);
      for (int64_t i = 0; i < count; ++i)  // C - 1/2 is 1/2 at most, and rounded to single precision
        ASSERT_NEAR(column[static_cast<size_t>(i)], c[static_cast<size_t>(i * count + j)], 0x1p-25)
            << i << " " << j;
    }
  }
}

TEST(KernelMatrix, ProductIsTheSameStoredOrNotAndOnAnyNumberOfThreads) {
  const Heads heads = random_heads(Construction::gaussian, 8, 700, 7);
  const std::vector<double> x = against_target(heads);
  const KernelMatrix stored(heads, 1), three(heads, 3), anew(heads, 2, 0);
  EXPECT_TRUE(stored.stored());
  EXPECT_FALSE(anew.stored());
  EXPECT_EQ(stored.multiply(x), three.multiply(x));
  EXPECT_EQ(stored.multiply(x), anew.multiply(x));
  const std::vector<double> dense = plain_kernel(heads), product = stored.multiply(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = dot(&dense[i * x.size()], x.data(), heads.count);
    // 700 products rounded to single precision, of entries up to 1/2 on the diagonal and 0.1 beside it.
    EXPECT_NEAR(product[i], exact, 700 * 0.1 * 0x1p-24) << i;
  }
}

TEST(HeadWeights, DoNotConvergeWhereTheMatrixIsNotPositiveDefinite) {
  // Keys that are too short and too long, as no construction but a faulty one gives them: C = [.58 1; 1 1].
  const Heads faulty{.d = 2, .count = 2, .q = {1, 0, 1, 0}, .k = {0.5, 0, 2, 0}, .cosine = {1, 1}};
  EXPECT_FALSE(weights_by_iteration(faulty).converged);
}

TEST(HeadWeights, SolveTheEquationOfTheBestOnes) {
  constexpr double kTolerance = 1e-9;
  for (const Construction construction : {Construction::gaussian, Construction::uniform}) {
    const Heads heads = random_heads(construction, 8, 600, 5);
    const HeadWeights found = weights_by_iteration(heads, {.tolerance = kTolerance});
    EXPECT_TRUE(found.converged);
    EXPECT_LE(found.residual, kTolerance);
    EXPECT_GT(found.smallest_eigenvalue, 0.01);
    EXPECT_LT(found.smallest_eigenvalue, 0.5);

    const std::vector<double> c = plain_kernel(heads), b = against_target(heads), &a = found.weights;
    double residual = 0, matrix = 0, error = 1;  // the first two are squares
    for (int64_t i = 0; i < heads.count; ++i) {
      const double* row = &c[static_cast<size_t>(i * heads.count)];
      const double image = dot(row, a.data(), heads.count), wanted = b[static_cast<size_t>(i)];
      residual += (image - wanted) * (image - wanted);
      error += a[static_cast<size_t>(i)] * (image - 2 * wanted);
      for (int64_t j = 0; j < heads.count; ++j) matrix += (row[j] - 0.5) * (row[j] - 0.5);
    }
    // The iteration has seen C - 1/2 rounded to single precision.
    const double length = std::sqrt(dot(a.data(), a.data(), heads.count));
    const double bound =
        kTolerance * std::sqrt(dot(b.data(), b.data(), heads.count)) + 0x1p-24 * std::sqrt(matrix) * length;
    EXPECT_LE(std::sqrt(residual), bound);
    // 1 - b'a and the error of these weights differ by a'(Ca - b).
    EXPECT_NEAR(found.error, error, bound * length);
  }
}

TEST(HeadWeights, ErrorIsWhatFreshPointsMeasure) {
  constexpr int64_t d = 4, count = 64;
  const Heads heads = random_heads(Construction::gaussian, d, count, 6);
  const HeadWeights best = weights_by_iteration(heads);
  const Philox words{.seed = 31};
  uint64_t index = 0;
  std::vector<double> errors;
  for (int s = 0; s < 40'000; ++s) {
    double y[d], w[d], total = 0, sign = 0;
    for (double& c : y) c = words.normal(index++);
    for (double& c : w) c = words.normal(index++);
    for (int64_t h = 0; h < count; ++h) {
      const double a = best.weights[static_cast<size_t>(h)];
      const bool first =
          dot(&heads.q[static_cast<size_t>(h * d)], y, d) * dot(&heads.k[static_cast<size_t>(h * d)], w, d) >
          0;
      total += a;
      sign += first ? a : -a;
    }
    // The layer writes total (x_1+x_2)/2 + sign (x_1-x_2)/2; the two are orthogonal, of squared length 1/2.
    const double off = (dot(w, y, d) > 0 ? 1 : -1) - sign;
    errors.push_back(((1 - total) * (1 - total) + off * off) / 2);
  }
  const Estimate measured = arithmetic_mean(errors);
  EXPECT_NEAR(best.error, measured.value, 4 * measured.stderr_);
}

TEST(HeadWeights, SmallestEigenvalueIsThatOfTwoHeads) {
  const Heads heads = random_heads(Construction::gaussian, 3, 2, 4);
  const double beside = plain_kernel(heads)[1];
  EXPECT_NEAR(weights_by_iteration(heads).smallest_eigenvalue, 1 - std::abs(beside), 1e-6);
}

TEST(HeadWeights, OfOneHeadAreItsChance) {
  const Heads heads = random_heads(Construction::gaussian, 4, 1, 8);
  const double b = against_target(heads)[0];
  EXPECT_NEAR(weights_by_iteration(heads).error, 1 - b * b, 1e-14);
}

TEST(HeadWeights, EqualQueriesAndKeysFail) {
  // They cannot cancel: from 512 heads to 2048 the error stands still, far above that of independent ones.
  const double few = weights_by_iteration(random_heads(Construction::equal, 8, 512, 1)).error;
  const double many = weights_by_iteration(random_heads(Construction::equal, 8, 2048, 1)).error;
  EXPECT_NEAR(few, many, 0.01);
  EXPECT_GT(many, 0.3);
}

// Mean over seeds with its standard error.
Estimate error_of_heads(Construction construction, int64_t d, int64_t count, int seeds,
                        double tolerance = 1e-4) {
  std::vector<double> errors;
  for (int seed = 0; seed < seeds; ++seed)
    errors.push_back(
        weights_by_iteration(random_heads(construction, d, count, 1000 + static_cast<uint64_t>(seed)),
                             {.tolerance = tolerance})
            .error);
  return arithmetic_mean(errors);
}

struct Published {
  int64_t d, count;
  double error;
};

// Both sides are means over seeds, ten at most on the other. For few heads our own spread is known; from 1024
// on one seed is within 1.1 % of another (measured over 24 at d = 16, where the spread is largest). The
// recovered table of independent heads lies 0.0004 to 0.0011 above ours at d = 4 and 8, more than its spread;
// b in half precision, which its solver had, accounts for 0.0001. Ours are held by the equation they solve
// and by counting, above.
void expect_published(Construction construction, const Published& p, double unit, double tolerance = 1e-4) {
  const int seeds = p.count <= 16 ? 200 : p.count <= 256 ? 10 : p.count <= 1024 ? 3 : 1;
  const Estimate e = error_of_heads(construction, p.d, p.count, seeds, tolerance);
  const double spread = p.count < 1024 ? 4 * e.stderr_ * std::sqrt(1 + seeds / 10.0) : 0.015 * p.error;
  const double above = construction == Construction::gaussian && p.d <= 8 ? 0.0011 : 0;
  EXPECT_NEAR(e.value, p.error, 0.5 * unit + spread + above)
      << to_string(construction) << " " << p.d << " " << p.count;
}

TEST(HeadWeights, OfUniformCosinesAreTheCorrectedFigure) {
  for (const Published& p : {Published{8, 128, .247},
                             {8, 1024, .175},
                             {8, 2048, .170},
                             {8, 4096, .166},
                             {8, 8192, .162},
                             {16, 128, .325},
                             {16, 1024, .198},
                             {16, 2048, .186},
                             {64, 128, .436},
                             {64, 1024, .278},
                             {64, 2048, .235}})
    expect_published(Construction::uniform, p, 1e-3);
}

TEST(HeadWeights, AsCodedAreTheFigureAsPublished) {
  // To the tolerance of the published code; the matrix is nearly indefinite.
  for (const Published& p :
       {Published{8, 128, .227}, {8, 1024, .166}, {8, 2048, .160}, {8, 4096, .153}, {8, 8192, .144}})
    expect_published(Construction::as_coded, p, 1e-3, 1e-5);
}

TEST(HeadWeights, OfIndependentHeadsAreTheRecoveredTable) {
  const int64_t counts[] = {1, 16, 64, 256, 1024, 2048, 4096};
  struct Row {
    int64_t d;
    double error[7];
  };
  for (const Row& row : {Row{4, {.749, .379, .2219, .1576, .1353, .1251, .1119}},
                         {8, {.744, .498, .3900, .2514, .1858, .1731, .1666}},
                         {16, {.753, .522, .4761, .3925, .2632, .2217, .1975}},
                         {32, {.748, .528, .5004, .4710, .3933, .3322, .2713}},
                         {64, {.749, .529, .5059, .4942, .4689, .4407, .3957}}})
    for (int i = 0; i < 7; ++i)
      expect_published(Construction::gaussian, {row.d, counts[i], row.error[i]},
                       counts[i] > 16 ? 1e-4 : 1e-3);
}

TEST(HeadWeights, StayAboveTheLowerBound) {
  for (const int64_t count : {64, 1024})
    EXPECT_GT(weights_by_iteration(random_heads(Construction::uniform, 8, count, 1)).error,
              lower_bound(8, 1, static_cast<double>(count)));
}

TEST(HeadWeights, OfOneRandomHeadIsThreeQuarters) {
  const Estimate e = error_of_heads(Construction::gaussian, 64, 1, 300);
  EXPECT_NEAR(e.value, one_hard_head_error(64), 4 * e.stderr_);
}

}  // namespace
}  // namespace rankscope
