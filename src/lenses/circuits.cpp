// The maps a head applies whatever the input: W_QK, which scores pairs of tokens, and W_OV, which moves them.
// Both are d x d of rank at most the head's width, so everything is read from the thin factors. Query head h
// uses KV head h / (heads / kv_heads). In a pre-norm block the norm's gain belongs to the map, unless the
// norm was taken out; under RoPE it is the one at offset 0. Keys and values of another stream come without
// the norm, and the two sides of their map have no channels in common: it has no trace.
#include <ATen/ATen.h>

#include <cmath>

#include "kernels/cpu/parallel.h"
#include "lenses/lens.h"
#include "lenses/support/numbers.h"
#include "lenses/support/on_device.h"
#include "spectral/factored.h"
#include "spectral/on_device.h"

namespace rankscope {
namespace {

/// Rows of one head, [width, d], with the input scaled by the norm's gain; a copy of that head alone.
at::Tensor head_of(const at::Tensor& w, int64_t head, int64_t width, const at::Tensor& gain) {
  const at::Tensor rows = w.detach().narrow(0, head * width, width);
  return (gain.defined() ? rows * gain.detach().to(w.scalar_type()) : rows).cpu();
}

/// A map with the gains of the norm on the queries or keys that it makes, where there is one.
at::Tensor normed(const at::Tensor& W, const Weights& weights, const AttentionSpec& a,
                  std::string_view name) {
  if (!a.qk_norm.acts() || !a.qk_norm.gain) return W;
  const at::Tensor gain = weights.get(name).detach();
  return W.detach() *
         (gain.size(0) == W.size(0) ? gain : gain.repeat({W.size(0) / gain.size(0)})).unsqueeze(1);
}

/// tr(W)^2 / ||W||_F^2 of W = q^T k, for q and k [d_qk, d], from the singular values of W.
double participation(const at::Tensor& q, const at::Tensor& k, const Spectrum& w) {
  const double trace = (q.to(at::kDouble) * k.to(at::kDouble)).sum().item<double>(), size = frobenius(w);
  return size > 0 ? (trace / size) * (trace / size) : 0.0;
}

/// The maps from the token to the queries, keys and values of all heads.
struct HeadMaps {
  at::Tensor W_Q, W_K, W_V;  // [heads * width, d]
};

/// A map of a latent with the map into the latent and the gains of the norm between the two.
at::Tensor through(const Weights& w, const at::Tensor& W, const std::string& latent,
                   const std::string& norm) {
  return w.has(latent) ? at::matmul(W.detach() * w.get(norm + ".w").detach(), w.get(latent).detach())
                       : W.detach();
}

HeadMaps maps_of(const WeightsView& view, const BranchSpec& branch) {
  const Weights& w = view.weights;
  const at::Tensor &W_Q = w.get("attn.W_Q"), &W_K = w.get("attn.W_K"), &W_V = w.get("attn.W_V");
  const AttentionSpec& a = *branch.attention();
  if (!w.has("attn.W_KV_latent"))
    return {normed(W_Q, w, a, "attn.q_norm.w"), normed(W_K, w, a, "attn.k_norm.w"), W_V};
  const at::Tensor own = through(w, W_K, "attn.W_KV_latent", "attn.kv_latent_norm"),
                   shared = w.get("attn.W_K_rotated").detach();
  const int64_t d = own.size(1);
  const at::Tensor k = at::cat({shared.unsqueeze(0).expand({a.heads, shared.size(0), d}),
                                own.view({a.heads, own.size(0) / a.heads, d})},
                               1);
  return {through(w, W_Q, "attn.W_Q_latent", "attn.q_latent_norm"), k.reshape({a.heads * a.d_qk, d}),
          through(w, W_V, "attn.W_KV_latent", "attn.kv_latent_norm")};
}

class Circuits : public Measurement {
  void weights(const WeightsView& view) override {
    const BranchSpec& branch = *view.block.attention_branch();
    const AttentionSpec& a = *branch.attention();
    const at::Tensor gain =
        branch.before.acts() ? view.weights.get_or_none(branch.norm_name + ".w") : at::Tensor();
    const HeadMaps maps = maps_of(view, branch);
    const at::Tensor &W_Q = maps.W_Q, &W_K = maps.W_K, &W_V = maps.W_V, &W_O = view.weights.get("attn.W_O");
    const bool own = branch.reads.empty();
    const at::Tensor key_gain = own ? gain : at::Tensor();
    if (stays_on_device(W_Q, true)) {
      weights_there(a, gain, key_gain, W_Q, W_K, W_V, W_O);
      if (!own) pr_there_.fill_(kNone);
      return;
    }
    // Head by head: the maps of all heads together would be as large as the block.
    qk_.resize(static_cast<size_t>(a.heads)), ov_.resize(qk_.size()), pr_.resize(qk_.size());
    parallel_over(a.heads, [&](int64_t h) {
      const int64_t group = h / (a.heads / a.kv_heads);
      const at::Tensor q = head_of(W_Q, h, a.d_qk, gain), k = head_of(W_K, group, a.d_qk, key_gain);
      const at::Tensor v = head_of(W_V, group, a.d_v, key_gain),
                       o = W_O.detach().narrow(1, h * a.d_v, a.d_v).cpu();
      qk_[static_cast<size_t>(h)] = spectrum_of_product(q.t(), k).front();
      ov_[static_cast<size_t>(h)] = spectrum_of_product(o, v).front();
      pr_[static_cast<size_t>(h)] = own ? participation(q, k, qk_[static_cast<size_t>(h)]) : kNone;
    });
  }

  // The same where the tensors are, all heads at once.
  void weights_there(const AttentionSpec& a, const at::Tensor& gain, const at::Tensor& key_gain,
                     const at::Tensor& W_Q, const at::Tensor& W_K, const at::Tensor& W_V,
                     const at::Tensor& W_O) {
    const auto of_heads = [&](const at::Tensor& w, const at::Tensor& by, int64_t heads, int64_t width) {
      const at::Tensor rows = w.detach().to(at::kDouble);
      const at::Tensor scaled = by.defined() ? rows * by.detach().to(at::kDouble) : rows;
      return scaled.view({heads, width, -1}).repeat_interleave(a.heads / heads, 0);  // [H, width, d]
    };
    const at::Tensor q = of_heads(W_Q, gain, a.heads, a.d_qk),
                     k = of_heads(W_K, key_gain, a.kv_heads, a.d_qk);
    qk_there_ = product_singular_values(q.transpose(1, 2), k);
    const at::Tensor size = qk_there_.square().sum(1).sqrt(), trace = (q * k).sum({1, 2});
    pr_there_ = at::where(size > 0, (trace / size).square(), at::zeros({}, size.options()));
    const at::Tensor o = W_O.detach().to(at::kDouble).view({-1, a.heads, a.d_v}).permute({1, 0, 2});
    ov_there_ = product_singular_values(o, of_heads(W_V, key_gain, a.kv_heads, a.d_v));
  }

  at::Tensor finish_there() const {
    const at::Tensor values =
        at::stack({pr_there_, effective_rank_of(qk_there_), effective_rank_of(ov_there_),
                   stable_rank_of(qk_there_), stable_rank_of(ov_there_)},
                  1);
    const at::Tensor none = at::full({}, kNone, values.options());
    return head_totals(values, none, at::ones({}, values.options()), {});
  }

  at::Tensor finish() override {
    if (qk_there_.defined()) return finish_there();
    Totals totals(static_cast<int64_t>(qk_.size()), 5);
    for (size_t h = 0; h < qk_.size(); ++h) {
      const double numbers[] = {pr_[h], effective_rank(qk_[h]), effective_rank(ov_[h]), stable_rank(qk_[h]),
                                stable_rank(ov_[h])};
      for (size_t k = 0; k < std::size(numbers); ++k)
        totals.set(static_cast<int64_t>(h), k, numbers[k], kNone, 1);
    }
    return totals.tensor();
  }

  at::Tensor array(std::string_view name) override {
    if (qk_there_.defined()) return name == "qk_spectrum" ? qk_there_ : ov_there_;
    std::vector<std::vector<double>> rows;
    for (const Spectrum& s : name == "qk_spectrum" ? qk_ : ov_) rows.push_back(s.sigma);
    return stacked(rows);
  }

  std::vector<Spectrum> qk_, ov_;  // by head
  std::vector<double> pr_;
  at::Tensor qk_there_, ov_there_, pr_there_;  // on the device: [H, width] and [H]
};

}  // namespace

extern const Lens lens_circuits{
    .name = "circuits",
    .summary = "Rank of the QK and OV maps of every head",
    .cost = "about 0.05 forward passes at T = 128",
    .sites = {{"attn", SiteForm::weights}},
    .metrics = {{.name = "qk_pr",
                 .formula = "tr(W)^2 / ||W||_F^2, W = W_Q^T W_K with the gain of a norm in front folded in "
                            "(post-norm: none; under RoPE: at offset 0)",
                 .meaning =
                     "directions in which a token scores tokens like itself alike; at most the head's width",
                 .version = 2},
                {.name = "qk_effective_rank",
                 .formula = "exp(entropy of sigma / sum sigma) of the same W",
                 .meaning = "directions a head compares; low: it looks at few features",
                 .version = 2},
                {.name = "ov_effective_rank",
                 .formula = "exp(entropy of sigma / sum sigma) of W_O W_V with the gain of a norm in front "
                            "folded in (post-norm: none)",
                 .meaning = "directions a head moves; low: it could be narrower",
                 .version = 2},
                {.name = "qk_stable_rank",
                 .formula = "sum sigma^2 / sigma_1^2 of the QK map",
                 .meaning = "its energy in units of its strongest direction",
                 .version = 2},
                {.name = "ov_stable_rank",
                 .formula = "sum sigma^2 / sigma_1^2 of the OV map",
                 .meaning = "its energy in units of its strongest direction",
                 .version = 2}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Circuits>(); },
    .arrays = {"ov_spectrum", "qk_spectrum"}};

}  // namespace rankscope
