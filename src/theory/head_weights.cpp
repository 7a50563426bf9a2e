#include "theory/head_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "theory/kernel_matrix.h"

namespace rankscope {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add_scaled(Vector& y, double s, const Vector& x) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += s * x[i];
}

// Smallest eigenvalue of a symmetric tridiagonal matrix, by bisection on the number of negative pivots.
double smallest_eigenvalue(const Vector& diagonal, const Vector& beside) {
  double low = std::numeric_limits<double>::infinity(), high = low;
  for (size_t i = 0; i < diagonal.size(); ++i) {
    const double radius =
        (i > 0 ? std::abs(beside[i - 1]) : 0) + (i < beside.size() ? std::abs(beside[i]) : 0);
    low = std::min(low, diagonal[i] - radius);
    high = std::min(high, diagonal[i]);
  }
  const auto has_one_below = [&](double x) {
    double pivot = diagonal[0] - x;
    for (size_t i = 1; i < diagonal.size() && pivot > 0; ++i)
      pivot = diagonal[i] - x - beside[i - 1] * beside[i - 1] / pivot;
    return pivot <= 0;
  };
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    (has_one_below(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

HeadWeights weights_by_iteration(const Heads& heads, const IterationOptions& options) {
  const KernelMatrix kernel(heads, options.threads, options.memory);
  const Vector b = against_target(heads);
  HeadWeights out;
  out.weights.assign(b.size(), 0.0);
  Vector residual = b, direction = b;
  Vector diagonal, beside;  // of the Lanczos matrix, which the steps of the iteration spell out
  const double scale = dot(b, b);
  double now = scale, step_before = 1, ratio_before = 0;
  while (out.iterations < options.most_iterations && now > options.tolerance * options.tolerance * scale) {
    const Vector image = kernel.multiply(direction);
    const double curvature = dot(direction, image);
    if (curvature <= 0) break;
    const double step = now / curvature;
    add_scaled(out.weights, step, direction);
    add_scaled(residual, -step, image);
    const double next = dot(residual, residual), ratio = next / now;
    diagonal.push_back(1 / step + ratio_before / step_before);
    beside.push_back(std::sqrt(ratio) / step);
    for (size_t i = 0; i < direction.size(); ++i) direction[i] = residual[i] + ratio * direction[i];
    now = next;
    step_before = step;
    ratio_before = ratio;
    ++out.iterations;
  }
  out.error = 1 - dot(b, out.weights);
  out.residual = std::sqrt(now / scale);
  out.converged = out.residual <= options.tolerance;
  if (!diagonal.empty()) {
    beside.pop_back();
    out.smallest_eigenvalue = smallest_eigenvalue(diagonal, beside);
  }
  return out;
}

}  // namespace rankscope
