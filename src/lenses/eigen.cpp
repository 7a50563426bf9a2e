// The second eigenvalue of an attention matrix, on request: it rules how fast repeated application of the
// same matrix makes tokens alike. A row-stochastic A has A 1 = 1, so the eigenvalues of (I - J) A are those
// of A with the 1 replaced by 0, and |lambda_2| is its spectral radius. Not for causal masks, whose
// eigenvalues are the diagonal.
#include <ATen/ATen.h>

#include "kernels/cpu/parallel.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "lenses/support/sampled_rows.h"
#include "lenses/support/sinks.h"
#include "spectral/arnoldi.h"

namespace rankscope {
namespace {

class Eigen : public Measurement, public LongMeasurement {
 public:
  explicit Eigen(bool sinks) : sinks_(sinks) {}

 private:
  at::Tensor long_pattern(const LongView&) override { return {}; }  // not of texts this long

  at::Tensor tile(const TileView& view) override {
    const int64_t rows = view.tile.size(2), T = view.tile.size(3), heads = view.tile.size(1);
    if (sinks_ || view.causal || rows != T || view.place.queries != T || T > kLongestWhole) return {};
    const at::Tensor p = host(view.tile);
    std::vector<RadiusEstimate> found(static_cast<size_t>(p.size(0) * heads));
    parallel_over(static_cast<int64_t>(found.size()), [&](int64_t i) {
      std::vector<double> a(static_cast<size_t>(T * T));
      load(p, i * T * T, T * T, a.data());
      found[static_cast<size_t>(i)] = spectral_radius(dense_map(a.data(), T, T, true));
    });
    Numbers numbers(p.size(0), heads, 2);
    for (int64_t i = 0; i < p.size(0) * heads; ++i) {
      double* out = numbers.of(i / heads, i % heads);
      out[0] = 1.0 - found[static_cast<size_t>(i)].value;
      out[1] = found[static_cast<size_t>(i)].residual;
    }
    return numbers.tensor();
  }

  bool sinks_;  // rows sum to less than one: there is no eigenvalue 1 to take out
};

}  // namespace

extern const Lens lens_eigen{
    .name = "eigen",
    .summary = "How fast repeated application of one attention matrix mixes tokens",
    .cost = "about 0.15 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}},
    .metrics =
        {{.name = "eigen_gap",
          .formula = "1 - |lambda_2| of the attention matrix, by Arnoldi steps; not for causal masks, "
                     "keys without a value, nor "
                     "T > 512",
          .meaning =
              "1: one application makes tokens alike; 0: some difference is kept for ever; below 0 only "
              "where eigen_residual is large",
          .high = 1.0},
         {.name = "eigen_residual",
          .formula = "||A v - lambda v|| of the Arnoldi vector behind eigen_gap",
          .meaning = "how far the steps came: near 0, the eigenvalue is right"}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Eigen>(rows_fall_short(context));
    },
    .on_request = true};

}  // namespace rankscope
