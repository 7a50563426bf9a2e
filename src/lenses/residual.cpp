// How far the tokens of a sample are from all being the same: R = X - 1 x^T with x their mean. The composite
// norm sqrt(||R||_1 ||R||_inf) is the one Dong, Cordonnier and Loukas (2021) plot; the Frobenius norms tell a
// shrinking residual from a growing offset.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"
#include "lenses/support/tokens.h"

namespace rankscope {
namespace {

constexpr size_t kResidualMetrics = 5;

/// sqrt(||A||_1 ||A||_inf): largest column sum times largest row sum, of absolute values.
double composite_norm(const Tokens& t) {
  std::vector<double> columns(static_cast<size_t>(t.width), 0.0);
  double rows = 0;
  for (int64_t i = 0; i < t.count; ++i)
    rows = std::max(rows, kernels::add_absolute(t.x + i * t.width, t.width, columns.data()));
  return std::sqrt(rows * *std::max_element(columns.begin(), columns.end()));
}

void measure_residual(const Tokens& t, double* out) {
  if (t.count < 2) return;  // one token is always its own mean
  const double composite = composite_norm(t);
  const double whole = std::sqrt(kernels::sum_squares(t.x, t.count * t.width));
  std::vector<double> mean(static_cast<size_t>(t.width));
  kernels::row_mean(t.x, t.count, t.width, mean.data());
  kernels::subtract_row(t.x, t.count, t.width, mean.data());
  const double residual = std::sqrt(kernels::sum_squares(t.x, t.count * t.width));
  const double residual_composite = composite_norm(t);
  if (!std::isfinite(whole)) return;
  out[0] = residual_composite;
  out[1] = composite > 0 ? residual_composite / composite : kNone;
  out[2] = residual;
  out[3] = std::sqrt(static_cast<double>(t.count) * kernels::sum_squares(mean.data(), t.width));
  out[4] = whole > 0 ? residual / whole : kNone;
}

// The same where the tensors are.
at::Tensor composite_norms(const at::Tensor& x) {
  const at::Tensor size = x.abs();
  return (size.sum(2).amax(1) * size.sum(1).amax(1)).sqrt();
}

at::Tensor residual_there(const PaddedTokens& t) {
  const at::Tensor composite = composite_norms(t.x), whole = t.x.square().sum({1, 2}).sqrt(), mean = t.mean();
  const at::Tensor rest = t.centered(mean), residual = rest.square().sum({1, 2}).sqrt(),
                   residual_composite = composite_norms(rest);
  const at::Tensor none = at::full({}, kNone, whole.options());
  const at::Tensor out =
      at::stack({residual_composite, at::where(composite > 0, residual_composite / composite, none), residual,
                 (t.count * mean.square().sum(1)).sqrt(), at::where(whole > 0, residual / whole, none)},
                1);
  return at::where((t.count >= 2).logical_and(whole.isfinite()).unsqueeze(1), out, none);
}

class Residual : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    if (const at::Tensor fused = fused_residuals(view); fused.defined()) return fused;
    return stays_on_device(view.x) ? measure_padded(view, residual_there)
                                   : measure_tokens(view, kResidualMetrics, measure_residual);
  }
};

}  // namespace

extern const Lens lens_residual{
    .name = "residual",
    .summary = "Distance of the tokens from all being alike",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics =
        {{.name = "residual_l1inf",
          .formula = "sqrt(||R||_1 ||R||_inf), R = X - 1 x^T, x the mean token",
          .meaning = "falls towards 0 as the tokens become one and the same",
          .mean = Mean::geometric,
          .version = 2},
         {.name = "residual_l1inf_rel",
          .formula = "sqrt(||R||_1 ||R||_inf) / sqrt(||X||_1 ||X||_inf)",
          .meaning =
              "the same beside the tokens' own size; may exceed 1, as taking a mean off can enlarge it",
          .mean = Mean::geometric,
          .version = 2},
         {.name = "residual_fro",
          .formula = "||R||_F",
          .meaning = "falling is collapse: the differences between tokens shrink",
          .mean = Mean::geometric,
          .version = 2},
         {.name = "offset_fro",
          .formula = "||1 x^T||_F",
          .meaning = "growing alone is no collapse: a common offset is added to differences that stay",
          .mean = Mean::geometric,
          .version = 2},
         {.name = "residual_fro_rel",
          .formula = "||R||_F / ||X||_F",
          .meaning = "share of the tokens' size that tells them apart: 0 all alike, 1 mean zero",
          .mean = Mean::geometric,
          .high = 1.0,
          .version = 2}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Residual>(); }};

}  // namespace rankscope
