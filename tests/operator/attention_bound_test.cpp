// The lemmas behind the cubic bound on random cases, written out plainly, and the instrument against them.
#include "operator/attention_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "operator/dense_reference.h"
#include "theory/collapse_bound.h"

namespace rankscope {
namespace {

using Matrix = std::vector<std::vector<double>>;

struct Norms {
  double one = 0, inf = 0;
  double composite() const { return std::sqrt(one * inf); }
};
Norms norms(const Matrix& a) {
  Norms out;
  std::vector<double> columns(a.front().size(), 0.0);
  for (const auto& row : a) {
    double sum = 0;
    for (size_t j = 0; j < row.size(); ++j) sum += std::fabs(row[j]), columns[j] += std::fabs(row[j]);
    out.inf = std::max(out.inf, sum);
  }
  out.one = *std::max_element(columns.begin(), columns.end());
  return out;
}
Matrix product(const Matrix& a, const Matrix& b, bool transpose_b = false) {
  const size_t columns = transpose_b ? b.size() : b.front().size();
  Matrix out(a.size(), std::vector<double>(columns, 0.0));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < columns; ++j)
      for (size_t k = 0; k < a.front().size(); ++k) out[i][j] += a[i][k] * (transpose_b ? b[j][k] : b[k][j]);
  return out;
}

// A head of width d on n tokens: R, W_QK, W_V, and the patterns they give.
struct Case {
  size_t n, d;
  Matrix R, W_QK, W_V, E, P;
  std::vector<double> q, D;

  explicit Case(uint64_t number) {
    const Philox random{77, 5, static_cast<uint32_t>(number)};
    uint64_t at = 0;
    n = 2 + random.below(7, at++);
    d = 1 + random.below(6, at++);
    const double size = std::pow(10.0, -2 + 2.5 * random.uniform(at++));
    const auto draw = [&](size_t rows, size_t columns, double scale) {
      Matrix m(rows, std::vector<double>(columns));
      for (auto& row : m)
        for (double& v : row) v = scale * random.normal(at++);
      return m;
    };
    R = draw(n, d, size);
    W_QK = draw(d, d, 1.0);
    W_V = draw(d, d, 1.0);
    look(draw(1, n, 1.0).front());
  }

  /// Another head on the same tokens.
  Case head(uint64_t number) const {
    Case other = *this;
    const Philox random{78, 5, static_cast<uint32_t>(number)};
    uint64_t at = 0;
    std::vector<double> r(n);
    for (Matrix* m : {&other.W_QK, &other.W_V})
      for (auto& row : *m)
        for (double& v : row) v = random.normal(at++), v *= std::pow(10.0, -random.uniform(at++));
    for (double& v : r) v = random.normal(at++);
    other.q.clear(), other.D.clear(), other.P.clear();
    other.look(r);
    return other;
  }

  void look(const std::vector<double>& r) {
    E = product(product(R, W_QK), R, true);
    double total = 0;
    for (const double v : r) total += std::exp(v);
    for (const double v : r) q.push_back(std::exp(v) / total);
    for (size_t i = 0; i < n; ++i) {
      std::vector<double> row;
      double sum = 0;
      for (size_t j = 0; j < n; ++j) row.push_back(q[j] * std::exp(E[i][j])), sum += row.back();
      for (double& v : row) v /= sum;
      P.push_back(row);
      D.push_back(*std::max_element(E[i].begin(), E[i].end()) - *std::min_element(E[i].begin(), E[i].end()));
    }
  }

  double spread() const { return *std::max_element(D.begin(), D.end()); }
  double score() const {
    double most = 0;
    for (const auto& row : E)
      for (const double v : row) most = std::max(most, std::fabs(v));
    return most;
  }
  Matrix difference() const {  // (P - 1 q^T) R
    Matrix out = P;
    for (auto& row : out)
      for (size_t j = 0; j < n; ++j) row[j] -= q[j];
    return product(out, R);
  }
  double sum_of_D() const {
    double sum = 0;
    for (const double v : D) sum += v;
    return sum;
  }
};

constexpr uint64_t kCases = 10000;
constexpr double kRounding = 1e-12;

TEST(CubicBoundLemmas, PatternsLieBetweenTheirBounds) {
  int covered = 0;
  for (uint64_t c = 0; c < kCases; ++c) {
    const Case t(c);
    for (size_t i = 0; i < t.n; ++i) {
      if (t.D[i] > kSpreadLimit) continue;
      ++covered;
      for (size_t j = 0; j < t.n; ++j) {
        ASSERT_GE(t.P[i][j], (1 - t.D[i]) * t.q[j] * (1 - kRounding)) << c;
        ASSERT_LE(t.P[i][j], (1 + 2 * t.D[i]) * t.q[j] * (1 + kRounding)) << c;
      }
    }
  }
  EXPECT_GT(covered, 10000);
}

TEST(CubicBoundLemmas, TheProofsStepsHoldWhereThePreconditionDoes) {
  int covered = 0;
  for (uint64_t c = 0; c < kCases; ++c) {
    const Case t(c);
    if (t.spread() > kSpreadLimit) continue;
    ++covered;
    const Matrix difference = t.difference();
    for (size_t k = 0; k < t.d; ++k) {
      double weighted = 0;  // q^T |R|
      for (size_t j = 0; j < t.n; ++j) weighted += t.q[j] * std::fabs(t.R[j][k]);
      for (size_t i = 0; i < t.n; ++i)
        ASSERT_LE(std::fabs(difference[i][k]), 2 * t.D[i] * weighted * (1 + kRounding) + 1e-300) << c;
    }
    const double D = std::sqrt(t.sum_of_D() * t.spread());
    const double written = norms(product(difference, t.W_V)).composite();
    ASSERT_LE(written, 2 * D * norms(t.R).composite() * norms(t.W_V).composite() * (1 + kRounding)) << c;
    const double e1 = norms(t.E).one;
    ASSERT_LE(e1, norms(t.W_QK).one * norms(t.R).one * norms(t.R).inf * (1 + kRounding)) << c;
    const double gamma = D / (2 * e1), r = norms(t.R).composite();
    ASSERT_LE(gamma, std::sqrt(static_cast<double>(t.n)) * (1 + kRounding)) << c;
    ASSERT_LE(written, 4 * gamma * norms(t.W_QK).one * norms(t.W_V).composite() * r * r * r * (1 + kRounding))
        << c;
  }
  EXPECT_GT(covered, 1000);
}

// What heads write adds up, and the composite of a sum may be larger than the sum of composites: maxima of
// the two norms are taken apart. About the mean token the residual is up to 2 (1 - 1/n) times the one of the
// proof.
TEST(CubicBoundLemmas, OfSeveralHeadsTheResidualAboutTheMeanIsBounded) {
  int covered = 0;
  double nearest = 0;
  for (uint64_t c = 0; c < kCases; ++c) {
    const Case first(c);
    std::vector<Case> heads{first};
    for (uint64_t h = 1; h < 3; ++h) heads.push_back(first.head(3 * c + h));
    if (std::any_of(heads.begin(), heads.end(), [](const Case& t) { return t.spread() > kSpreadLimit; }))
      continue;
    ++covered;
    Matrix written(first.n, std::vector<double>(first.d, 0.0));
    double sums = 0, ranges = 0, qk = 0, one = 0, inf = 0;
    for (const Case& t : heads) {
      const Matrix own = product(t.difference(), t.W_V);
      for (size_t i = 0; i < t.n; ++i)
        for (size_t k = 0; k < t.d; ++k) written[i][k] += own[i][k];
      const double e1 = norms(t.E).one;
      sums = std::max(sums, t.sum_of_D() / (2 * e1));
      ranges = std::max(ranges, t.spread() / (2 * e1));
      qk = std::max(qk, norms(t.W_QK).one);
      one = std::max(one, norms(t.W_V).one);
      inf = std::max(inf, norms(t.W_V).inf);
    }
    for (size_t k = 0; k < first.d; ++k) {
      double mean = 0;
      for (const auto& row : written) mean += row[k] / static_cast<double>(first.n);
      for (auto& row : written) row[k] -= mean;
    }
    const double constant = cubic_constant(std::sqrt(sums * ranges), qk * std::sqrt(one * inf), 3, 1,
                                           static_cast<double>(first.n));
    const double allowed = constant * std::pow(norms(first.R).composite(), 3);
    nearest = std::max(nearest, norms(written).composite() / allowed);
    ASSERT_LE(norms(written).composite(), allowed * (1 + kRounding)) << c;
  }
  EXPECT_GT(covered, 1000);
  EXPECT_GT(nearest, 1e-3);  // not by orders of magnitude
}

TEST(CubicBoundLemmas, WithoutGammaItHoldsForSmallScores) {
  int covered = 0;
  for (uint64_t c = 0; c < kCases; ++c) {
    const Case t(c);
    if (t.score() > kScoreLimit) continue;
    ++covered;
    for (size_t i = 0; i < t.n; ++i) {
      double mean = 0;
      for (size_t k = 0; k < t.n; ++k) mean += t.q[k] * std::fabs(t.E[i][k]);
      for (size_t j = 0; j < t.n; ++j)
        ASSERT_LE(std::fabs(t.P[i][j] - t.q[j]),
                  2 * t.q[j] * (std::fabs(t.E[i][j]) + mean) * (1 + kRounding) + 1e-16)
            << c;
    }
    const Norms difference = norms(t.difference()), R = norms(t.R);
    ASSERT_LE(difference.one, 4 * norms(t.E).one * R.one * (1 + kRounding)) << c;
  }
  EXPECT_GT(covered, 1000);
}

TEST(AttentionBound, IsWhatItsFormulasSay) {
  using namespace test;
  ModelSpec spec = tiny_spec(NormPlace::post, 1);
  spec.blocks[0].attention().kv_heads = 2;
  const auto source = random_source(spec, 3, "float64", "cpu");
  const Weights w = source->load("blocks.0");
  const AttentionSpec& a = spec.blocks[0].attention();
  at::manual_seed(4);
  const at::Tensor X = at::randn({9, 24}, at::kDouble);
  const AttentionBound b = attention_bound(SplitTokens(X), a, w);
  const at::Tensor R = X - X.mean(0);
  const auto one = [](const at::Tensor& m) { return m.abs().sum(0).max().item<double>(); };
  const auto inf = [](const at::Tensor& m) { return m.abs().sum(1).max().item<double>(); };
  double qk = 0, ov_one = 0, ov_inf = 0, sums = 0, ranges = 0, spread = 0, score = 0;
  for (int64_t h = 0; h < 4; ++h) {
    const at::Tensor Q = w.get("attn.W_Q").narrow(0, 6 * h, 6),
                     K = w.get("attn.W_K").narrow(0, 6 * (h / 2), 6);
    const at::Tensor V = w.get("attn.W_V").narrow(0, 6 * (h / 2), 6),
                     O = w.get("attn.W_O").narrow(1, 6 * h, 6);
    const at::Tensor W_QK = Q.t().matmul(K), W = V.t().matmul(O.t());
    const at::Tensor E = R.matmul(W_QK).matmul(R.t()) * a.scale;
    const at::Tensor D = std::get<0>(E.max(1)) - std::get<0>(E.min(1));
    qk = std::max(qk, one(W_QK));
    ov_one = std::max(ov_one, one(W));
    ov_inf = std::max(ov_inf, inf(W));
    sums = std::max(sums, D.sum().item<double>() / (2 * one(E)));
    ranges = std::max(ranges, D.max().item<double>() / (2 * one(E)));
    spread = std::max(spread, D.max().item<double>());
    score = std::max(score, E.abs().max().item<double>());
  }
  const double gamma = std::sqrt(sums * ranges);
  EXPECT_NEAR(b.gamma, gamma, 1e-12 * gamma);
  EXPECT_NEAR(b.beta, qk * std::sqrt(ov_one * ov_inf), 1e-12 * b.beta);
  EXPECT_NEAR(b.spread, spread, 1e-12 * spread);
  EXPECT_NEAR(b.score, score, 1e-12 * score);
  EXPECT_NEAR(b.c, 8 * (1 - 1.0 / 9) * gamma * b.beta * 4 * a.scale, 1e-12 * b.c);
  EXPECT_NEAR(std::exp(b.log_residual), std::sqrt(one(R) * inf(R)), 1e-12 * std::sqrt(one(R) * inf(R)));
}

TEST(AttentionBound, GammaGrowsWithTheRootOfTheTokensWhereScoresAreDiagonal) {
  // W_QK = I and R = I - J: E = I - J, D = I, ||E||_1 = 2 (1 - 1 / n).
  constexpr int64_t n = 16;
  AttentionSpec spec;
  spec.d_qk = spec.d_v = n;
  Weights w;
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O"})
    w.set(name, at::eye(n, at::kDouble));
  const AttentionBound b = attention_bound(SplitTokens(at::eye(n, at::kDouble)), spec, w);
  EXPECT_NEAR(b.gamma, std::sqrt(n) / (4 * (1 - 1.0 / n)), 1e-12);
}

TEST(CollapseBound, FollowsItsRecursion) {
  const double c = 0.3, r0 = 1.2;
  double r = r0;
  for (int l = 1; l <= 4; ++l) {
    r = c * r * r * r;
    EXPECT_NEAR(log_collapse_bound(c, std::log(r0), l), std::log(r), 1e-12 * std::fabs(std::log(r)) + 1e-12);
  }
  EXPECT_LT(collapse_margin(c, std::log(r0)), 1.0);
  EXPECT_NEAR(std::exp(kSpreadLimit), 1 + 2 * kSpreadLimit, 1e-12);
  EXPECT_LE(std::exp(kScoreLimit) * std::expm1(kScoreLimit) / kScoreLimit, 2.0);
}

TEST(CollapseBound, OfNothingIsNothing) {
  EXPECT_EQ(log_collapse_bound(0, std::log(0.5), 3), -INFINITY);
  EXPECT_EQ(log_collapse_bound(0.1, -INFINITY, 3), -INFINITY);
  EXPECT_EQ(log_collapse_bound(0, -INFINITY, 3), -INFINITY);
  EXPECT_EQ(log_collapse_bound(0, std::log(0.5), 0), std::log(0.5));
}

}  // namespace
}  // namespace rankscope
