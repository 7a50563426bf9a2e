// What each head writes into the residual stream, beside what is there. ||z W_O^T||_F^2 = tr(Z M) with
// Z = z^T z of a sample and M = W_O^T W_O, both [d_v, d_v], so a head's output [N, d] is never formed.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "lenses/support/on_device.h"
#include "spectral/dense.h"

namespace rankscope {
namespace {

/// The upper triangle of a^T a [n, n] for a [m, n], mirrored.
std::vector<double> full_gram(const double* a, int64_t m, int64_t n) {
  std::vector<double> g(static_cast<size_t>(n * n));
  dense::gram_of_columns(a, m, n, g.data());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) g[static_cast<size_t>(i * n + j)] = g[static_cast<size_t>(j * n + i)];
  return g;
}

class Heads : public Measurement {
  at::Tensor factored(const FactoredView& view) override {
    return stays_on_device(view.z) ? factored_there(view) : factored_here(view);
  }

  at::Tensor factored_there(const FactoredView& view) {
    const int64_t count = view.z.size(1), d_v = view.z.size(2);
    const at::Tensor z = padded_rows(view.z, view.packing).x.to(at::kDouble).permute({0, 2, 1, 3});
    if (!weights_there_.defined()) {
      const at::Tensor w = view.W_O.detach().to(at::kDouble).view({-1, count, d_v}).permute({1, 0, 2});
      weights_there_ = at::matmul(w.transpose(1, 2), w);
    }
    const at::Tensor written = (at::matmul(z.transpose(2, 3), z) * weights_there_).sum({2, 3});  // [S, H]
    const at::Tensor x = padded_rows(view.x, view.packing).x.to(at::kDouble);
    const at::Tensor beside = x.square().sum({1, 2}).unsqueeze(1);
    const at::Tensor ratio = (written.clamp_min(0) / beside).sqrt();
    return of_heads(
        at::where((beside > 0).logical_and(ratio.isfinite()), ratio, at::full({}, kNone, ratio.options()))
            .unsqueeze(2));
  }

  at::Tensor factored_here(const FactoredView& view) {
    const int64_t count = view.z.size(1), d_v = view.z.size(2), samples = view.packing.count();
    const at::Tensor z = host(view.z), x = host(view.x);
    const auto rows_of = [&](int64_t s) { return view.packing.offsets[static_cast<size_t>(s)]; };
    std::vector<double> stream(static_cast<size_t>(samples)), written(static_cast<size_t>(samples * count));
    parallel_over(samples, [&](int64_t s) {
      std::vector<double> row(static_cast<size_t>(x.size(1)));
      for (int64_t i = rows_of(s); i < rows_of(s + 1); ++i) {
        load(x, i * x.size(1), x.size(1), row.data());
        stream[static_cast<size_t>(s)] += kernels::sum_squares(row.data(), x.size(1));
      }
    });
    if (weights_.empty()) weights_.resize(static_cast<size_t>(count));
    parallel_over(count, [&](int64_t h) {
      std::vector<double>& weights = weights_[static_cast<size_t>(h)];
      if (weights.empty()) {
        const at::Tensor w = view.W_O.detach().narrow(1, h * d_v, d_v).to(at::kCPU, at::kDouble).contiguous();
        weights = full_gram(w.data_ptr<double>(), w.size(0), d_v);
      }
      std::vector<double> own;
      for (int64_t s = 0; s < samples; ++s) {
        const int64_t length = view.packing.length(s);
        own.resize(static_cast<size_t>(length * d_v));
        for (int64_t i = 0; i < length; ++i)
          load(z, ((rows_of(s) + i) * count + h) * d_v, d_v, own.data() + i * d_v);
        const std::vector<double> gram = full_gram(own.data(), length, d_v);
        written[static_cast<size_t>(h * samples + s)] = kernels::dot(gram.data(), weights.data(), d_v * d_v);
      }
    });
    Numbers numbers(samples, count, 1);
    for (int64_t h = 0; h < count; ++h)
      for (int64_t s = 0; s < samples; ++s) {
        const double beside = stream[static_cast<size_t>(s)];
        const double ratio = std::sqrt(std::max(0.0, written[static_cast<size_t>(h * samples + s)]) / beside);
        if (beside > 0 && std::isfinite(ratio)) *numbers.of(s, h) = ratio;
      }
    return numbers.tensor();
  }

  std::vector<std::vector<double>> weights_;  // M by head: the same for every batch
  at::Tensor weights_there_;                  // the same on the device, [H, d_v, d_v]
};

}  // namespace

extern const Lens lens_heads{
    .name = "heads",
    .summary = "How much each head writes into the residual stream",
    .cost = "about 0.02 forward passes at T = 128",
    .sites = {{"attn.hook_result", SiteForm::factored}},
    .metrics = {{.name = "head_output_rel",
                 .formula = "||z_h W_O,h^T||_F / ||x||_F, x the residual stream before the block",
                 .meaning = "near 0: a head that does nothing here"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Heads>(); }};

}  // namespace rankscope
