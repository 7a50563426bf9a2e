// The residual at the point each norm itself would choose, where residual.cpp takes the mean token. For
// ||.||_1 (largest column sum) that is the median of every channel, exactly. The composite norm has no closed
// form: the best point a descent finds from mean and median, and below it what no point can reach.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lenses/lens.h"
#include "lenses/support/tokens.h"

namespace rankscope {
namespace {

constexpr size_t kResidualMinMetrics = 3;
constexpr int kSteps = 24;

struct Norms {
  double l1, inf;               // largest column sum, largest row sum
  int64_t column = 0, row = 0;  // where
  double composite() const { return std::sqrt(l1) * std::sqrt(inf); }
};

Norms norms_at(const Tokens& t, const std::vector<double>& x) {
  std::vector<double> columns(x.size(), 0.0);
  Norms out{0, 0};
  for (int64_t i = 0; i < t.count; ++i) {
    double row = 0;
    for (int64_t j = 0; j < t.width; ++j) {
      const double a = std::fabs(t.x[i * t.width + j] - x[static_cast<size_t>(j)]);
      row += a;
      columns[static_cast<size_t>(j)] += a;
    }
    if (row > out.inf) out.inf = row, out.row = i;
  }
  const auto most = std::max_element(columns.begin(), columns.end());
  out.l1 = *most;
  out.column = most - columns.begin();
  return out;
}

std::vector<double> medians(const Tokens& t) {
  std::vector<double> out(static_cast<size_t>(t.width)), column(static_cast<size_t>(t.count));
  for (int64_t j = 0; j < t.width; ++j) {
    for (int64_t i = 0; i < t.count; ++i) column[static_cast<size_t>(i)] = t.x[i * t.width + j];
    const auto middle = column.begin() + t.count / 2;
    std::nth_element(column.begin(), middle, column.end());
    out[static_cast<size_t>(j)] = *middle;
  }
  return out;
}

std::vector<double> means(const Tokens& t) {
  std::vector<double> out(static_cast<size_t>(t.width), 0.0);
  for (int64_t i = 0; i < t.count; ++i)
    for (int64_t j = 0; j < t.width; ++j)
      out[static_cast<size_t>(j)] += t.x[i * t.width + j] / static_cast<double>(t.count);
  return out;
}

// Towards the token furthest away, by less and less: the row sum falls, the column sums hardly move.
double descend(const Tokens& t, std::vector<double> x) {
  double best = norms_at(t, x).composite();
  for (int step = 1; step <= kSteps; ++step) {
    const Norms here = norms_at(t, x);
    for (int64_t j = 0; j < t.width; ++j)
      x[static_cast<size_t>(j)] += (t.x[here.row * t.width + j] - x[static_cast<size_t>(j)]) / (4.0 * step);
    best = std::min(best, norms_at(t, x).composite());
  }
  return best;
}

// Any x is at least half their distance away from one of two tokens.
double half_diameter(const Tokens& t, int64_t from) {
  double most = 0;
  for (int64_t i = 0; i < t.count; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < t.width; ++j) sum += std::fabs(t.x[i * t.width + j] - t.x[from * t.width + j]);
    most = std::max(most, sum);
  }
  return most / 2;
}

void measure_residual_min(const Tokens& t, double* out) {
  if (t.count < 2) return;
  const std::vector<double> median = medians(t), mean = means(t);
  const Norms at_median = norms_at(t, median);
  out[0] = at_median.l1;
  out[1] = std::min(descend(t, median), descend(t, mean));
  out[2] = std::sqrt(at_median.l1) * std::sqrt(half_diameter(t, at_median.row));
}

class ResidualMin : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    return measure_tokens(view, kResidualMinMetrics, measure_residual_min);
  }
};

}  // namespace

extern const Lens lens_residual_min{
    .name = "residual_min",
    .summary = "Distance of the tokens from the nearest single token, norm by norm",
    .cost = "about 0.5 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics = {{.name = "residual_l1_min",
                 .formula = "min_x ||X - 1 x^T||_1, attained at the median of every channel",
                 .meaning = "never above the same norm at the mean, never below half of it",
                 .mean = Mean::geometric,
                 .version = 2},
                {.name = "residual_l1inf_min",
                 .formula =
                     "the smallest sqrt(||R||_1 ||R||_inf), R = X - 1 x^T, that a descent over x finds",
                 .meaning = "beside residual_l1inf: how much of the residual is the choice of the mean",
                 .mean = Mean::geometric,
                 .version = 2},
                {.name = "residual_l1inf_min_bound",
                 .formula =
                     "sqrt(min_x ||R||_1 max_i ||x_i - x_f||_1 / 2), f the token furthest from the median",
                 .meaning = "no x goes below this; the true minimum lies between it and residual_l1inf_min",
                 .mean = Mean::geometric,
                 .version = 2}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<ResidualMin>();
    },
    .on_request = true};

}  // namespace rankscope
