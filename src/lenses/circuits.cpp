// The maps a head applies whatever the input: W_QK, which scores pairs of tokens, and W_OV, which moves them.
// Both are d x d of rank at most the head's width, so everything is read from the thin factors. Query head h
// uses KV head h / (heads / kv_heads). In a pre-norm block the norm's gain belongs to the map; under RoPE it
// is the one at offset 0.
#include <ATen/ATen.h>

#include <cmath>

#include "kernels/cpu/parallel.h"
#include "lenses/lens.h"
#include "spectral/factored.h"

namespace rankscope {
namespace {

/// [heads, width, d]: the weight of one projection, its input scaled by the norm's gain.
at::Tensor by_head(const at::Tensor& w, int64_t heads, const at::Tensor& gain) {
  const at::Tensor folded = gain.defined() ? w.detach() * gain.detach().to(w.scalar_type()) : w.detach();
  return folded.reshape({heads, -1, w.size(1)});
}

/// tr(W)^2 / ||W||_F^2 of W = q^T k, for q and k [d_qk, d].
double participation(const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor a = q.to(at::kDouble), b = k.to(at::kDouble);
  const double trace = (a * b).sum().item<double>();
  const double energy = (at::mm(a, a.t()) * at::mm(b, b.t())).sum().item<double>();
  return energy > 0 ? trace * trace / energy : 0.0;
}

class Circuits : public Measurement {
  void weights(const WeightsView& view, Recorder& recorder) override {
    const AttentionSpec& a = view.block.attention;
    const bool folded = view.block.norm.place == NormPlace::pre && view.weights.has("ln1.w");
    const at::Tensor gain = folded ? view.weights.get("ln1.w") : at::Tensor();
    const at::Tensor q = by_head(view.weights.get("attn.W_Q"), a.heads, gain);
    const at::Tensor k = by_head(view.weights.get("attn.W_K"), a.kv_heads, gain);
    const at::Tensor v = by_head(view.weights.get("attn.W_V"), a.kv_heads, gain);
    const at::Tensor o = view.weights.get("attn.W_O").detach();
    const at::Tensor out = o.reshape({o.size(0), a.heads, -1}).permute({1, 0, 2});  // [heads, d, d_v]

    const auto report = [&](std::string_view metric, double value, size_t head) {
      if (!std::isnan(value)) recorder.value(metric, value, kNone, 1, static_cast<int>(head));
    };
    const at::Tensor group =
        at::arange(a.heads, q.options().dtype(at::kLong)).div(a.heads / a.kv_heads, "floor");
    const std::vector<Spectrum> qk = spectrum_of_product(q.transpose(1, 2), k.index_select(0, group));
    const std::vector<Spectrum> ov = spectrum_of_product(out, v.index_select(0, group));
    std::vector<double> pr(qk.size());
    parallel_over(a.heads, [&](int64_t h) {
      pr[static_cast<size_t>(h)] = participation(q[h].cpu(), k[h / (a.heads / a.kv_heads)].cpu());
    });
    for (size_t h = 0; h < qk.size(); ++h) {
      report("qk_pr", pr[h], h);
      report("qk_effective_rank", effective_rank(qk[h]), h);
      report("ov_effective_rank", effective_rank(ov[h]), h);
      report("qk_stable_rank", stable_rank(qk[h]), h);
      report("ov_stable_rank", stable_rank(ov[h]), h);
    }
  }
};

}  // namespace

extern const Lens lens_circuits{
    .name = "circuits",
    .summary = "Rank of the QK and OV maps of every head",
    .cost = "0.03 forward passes at T = 128",
    .reads = static_cast<unsigned>(Reads::weights),
    .metrics = {{.name = "qk_pr",
                 .formula =
                     "tr(W)^2 / ||W||_F^2, W = W_Q^T W_K with norm gains folded in (under RoPE: at offset 0)",
                 .meaning =
                     "directions in which a token scores tokens like itself alike; at most the head's width"},
                {.name = "qk_effective_rank",
                 .formula = "exp(entropy of sigma / sum sigma) of the same W",
                 .meaning = "directions a head compares; low: it looks at few features"},
                {.name = "ov_effective_rank",
                 .formula = "exp(entropy of sigma / sum sigma) of W_O W_V with norm gains folded in",
                 .meaning = "directions a head moves; low: it could be narrower"},
                {.name = "qk_stable_rank",
                 .formula = "sum sigma^2 / sigma_1^2 of the QK map",
                 .meaning = "its energy in units of its strongest direction"},
                {.name = "ov_stable_rank",
                 .formula = "sum sigma^2 / sigma_1^2 of the OV map",
                 .meaning = "its energy in units of its strongest direction"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Circuits>(); }};

}  // namespace rankscope
