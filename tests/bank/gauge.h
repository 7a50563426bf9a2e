// The same network written down in another way: a random element of what the layers' parameters may be
// multiplied by, moved to or exchanged for without changing a single output. docs/CONVENTIONS.md lists them.
#pragma once

#include "bank/families.h"

namespace rankscope::bank {

/// A random matrix that is well away from singular, and its inverse.
inline std::pair<at::Tensor, at::Tensor> invertible(Draw& draw, int64_t n) {
  const at::Tensor A =
      at::eye(n, at::kDouble) + 0.3 * draw.normal({n, n}).to(at::kDouble) / std::sqrt(double(n));
  return {A, at::linalg_inv(A)};
}

inline void times(at::Tensor t, const at::Tensor& left) { t.copy_(left.matmul(t.to(at::kDouble))); }

/// Gain and bias of the norm before a part, against the part's matrices and biases.
inline void move_gain(Stored& w, Draw& draw, const std::string& norm,
                      const std::vector<std::array<std::string, 2>>& readers) {
  at::Tensor& gain = w[norm + ".w"];
  const at::Tensor old = gain.clone(), factor = (0.7 * draw.normal(gain.sizes())).clamp(-1, 1).exp();
  gain.copy_(old * factor);
  for (const auto& [W, b] : readers) w[W] = w[W] / factor;
  if (!w.has(norm + ".b")) return;
  const at::Tensor shift = draw.normal(gain.sizes());
  w[norm + ".b"] += shift;
  for (const auto& [W, b] : readers) w[b] -= at::mv(w[W], shift);
}

/// GL between values and outputs and between queries and keys; b_V into b_O; a bias of the keys; the order of
/// neurons.
inline void change_heads(Stored& w, Draw& draw, int64_t l) {
  const auto of = [&](const char* name) -> at::Tensor& { return w[block(l, fmt::format("attn.{}", name))]; };
  for (int64_t h = 0; h < kHeads; ++h) {
    const auto rows = [&](const char* name) { return of(name).narrow(0, h * kHeadWidth, kHeadWidth); };
    const auto [A, A_inverse] = invertible(draw, kHeadWidth);
    times(rows("W_V"), A);
    rows("b_V").copy_(at::mv(A, rows("b_V").to(at::kDouble)));
    at::Tensor O = of("W_O").narrow(1, h * kHeadWidth, kHeadWidth);
    O.copy_(O.to(at::kDouble).matmul(A_inverse));
    const auto [B, B_inverse] = invertible(draw, kHeadWidth);
    times(rows("W_Q"), B);
    rows("b_Q").copy_(at::mv(B, rows("b_Q").to(at::kDouble)));
    times(rows("W_K"), B_inverse.t());
  }
  of("b_O") += at::mv(of("W_O"), of("b_V"));
  of("b_V").zero_();
  of("b_K").copy_(draw.normal(of("b_K").sizes()));
}

inline void change_neurons(Stored& w, Draw& draw, int64_t l) {
  const at::Tensor order = std::get<1>(draw.normal({kHidden}).sort());
  for (const char* name : {"mlp.W_in", "mlp.b_in"})
    w[block(l, name)] = w[block(l, name)].index_select(0, order);
  w[block(l, "mlp.W_out")] = w[block(l, "mlp.W_out")].index_select(1, order);
}

/// Rotation and scale of the stream. Root mean squares do not see a rotation as long as their gains are one.
inline void turn_stream(Stored& w, Draw& draw, bool rotate) {
  const at::Tensor R = rotate ? std::get<0>(at::linalg_qr(draw.normal({kWidth, kWidth}).to(at::kDouble)))
                              : at::eye(kWidth, at::kDouble);
  const double scale = draw.uniform(0.5, 2);
  const auto reads = [&](const std::string& name) {
    w[name] = w[name].to(at::kDouble).matmul(R.t()).to(at::kFloat);
  };
  const auto writes = [&](const std::string& name) {
    const at::Tensor W = w[name].to(at::kDouble);
    w[name] = (scale * R.matmul(W)).to(at::kFloat);
  };
  for (const char* name : {"embed.W_E", "embed.W_pos"})
    w[name] = (scale * w[name].to(at::kDouble).matmul(R.t())).to(at::kFloat);
  for (int64_t l = 0; l < w.spec().depth(); ++l) {
    for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "mlp.W_in"}) reads(block(l, name));
    for (const char* name : {"attn.W_O", "mlp.W_out", "attn.b_O", "mlp.b_out"}) writes(block(l, name));
  }
  reads("unembed.W_U");
}

/// Whether the stream is turned. What is said of channels ("massive") is said of one basis of it.
inline bool turned(const Planted& p) { return p.spec.pre_norm() && p.spec.final_norm.kind == NormKind::rms; }

/// A random element of all of it. Positions that norms stand behind, as in BERT, leave a norm's gain where it
/// is.
inline void reparametrise(Planted& p, Draw& draw) {
  Stored& w = *p.weights;
  for (int64_t l = 0; l < p.spec.depth(); ++l) {
    change_heads(w, draw, l);
    change_neurons(w, draw, l);
  }
  if (!p.spec.pre_norm()) return;
  turn_stream(w, draw, turned(p));
  for (int64_t l = 0; l < p.spec.depth(); ++l) {
    move_gain(w, draw, block(l, "ln1"),
              {{block(l, "attn.W_Q"), block(l, "attn.b_Q")},
               {block(l, "attn.W_K"), block(l, "attn.b_K")},
               {block(l, "attn.W_V"), block(l, "attn.b_V")}});
    move_gain(w, draw, block(l, "ln2"), {{block(l, "mlp.W_in"), block(l, "mlp.b_in")}});
  }
}

}  // namespace rankscope::bank
