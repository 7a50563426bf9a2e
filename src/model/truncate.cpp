#include <algorithm>
#include <cmath>

#include "attention/variant.h"
#include "base/error.h"
#include "model/kv_latent.h"
#include "model/sites.h"
#include "model/streams.h"
#include "model/truncate.h"
#include "parts/program.h"

namespace rankscope {
namespace {

// [KV * d, n] to [H, d, n], each KV head repeated for its query heads, in double: the cut is made once.
at::Tensor per_head(const at::Tensor& w, int64_t kv_heads, int64_t heads) {
  const int64_t d = w.size(0) / kv_heads;
  return w.to(at::kDouble)
      .view({kv_heads, 1, d, w.size(1)})
      .expand({kv_heads, heads / kv_heads, d, w.size(1)})
      .reshape({heads, d, w.size(1)});
}

// Best rank-r approximation of each head's [d, n] matrix.
at::Tensor cut(const at::Tensor& w, int64_t rank) {
  const auto [U, S, Vh] = at::linalg_svd(w, false);
  return (U.narrow(-1, 0, rank) * S.narrow(-1, 0, rank).unsqueeze(-2)).matmul(Vh.narrow(-2, 0, rank));
}

struct Factors {
  at::Tensor left, right;  // [H, d, m], [H, d, n]
};

// Factors of the same inner width d whose product left^T right is the best rank-r approximation of a^T b.
// Thin QR of both sides first: the SVD is then of a d x d matrix.
Factors cut_product(const at::Tensor& a, const at::Tensor& b, int64_t rank) {
  const auto [Qa, Ra] = at::linalg_qr(a.transpose(1, 2));  // [H, m, k], [H, k, d]
  const auto [Qb, Rb] = at::linalg_qr(b.transpose(1, 2));
  const auto [U, S, Vh] = at::linalg_svd(Ra.matmul(Rb.transpose(1, 2)), false);
  const at::Tensor root = S.narrow(-1, 0, rank).sqrt().unsqueeze(-2);
  const at::Tensor left = Qa.matmul(U.narrow(-1, 0, rank) * root);  // [H, m, r]
  const at::Tensor right = Qb.matmul(Vh.narrow(-2, 0, rank).transpose(1, 2) * root);
  Factors out{at::zeros_like(a), at::zeros_like(b)};
  out.left.narrow(1, 0, rank).copy_(left.transpose(1, 2));
  out.right.narrow(1, 0, rank).copy_(right.transpose(1, 2));
  return out;
}

// The gain and the bias of the norm before, as [d]; ones and zeros where there is none.
struct Folded {
  at::Tensor gain, inverse, bias;
};
Folded norm_before(const Weights& w, const BranchSpec& branch, bool keys) {
  const int64_t d = w.get("attn.W_Q").size(1);
  const auto wide = w.get("attn.W_Q").options().dtype(at::kDouble);
  const auto get = [&](const char* what) {
    // Keys of another stream have not been through the norm.
    return branch.before.acts() && !(keys && !branch.reads.empty()) ? w.get_or_none(branch.norm_name + what)
                                                                    : at::Tensor();
  };
  const at::Tensor gain = get(".w"), bias = get(".b");
  Folded f{gain.defined() ? gain.to(at::kDouble) : at::ones({d}, wide),
           {},
           bias.defined() ? bias.to(at::kDouble) : at::zeros({d}, wide)};
  f.inverse = at::where(f.gain == 0, at::zeros_like(f.gain), f.gain.reciprocal());  // a channel nobody reads
  return f;
}

at::Tensor bias_by_head(const Weights& w, const char* name, int64_t given, const AttentionSpec& a,
                        const at::Tensor& like) {
  const at::Tensor b = w.get_or_none(name);
  return b.defined() ? per_head(b.unsqueeze(1), given, a.heads)
                     : at::zeros({a.heads, a.d_qk, 1}, like.options());
}

// Cuts the map W_Q^T W_K as the normalised tokens meet it. What the biases of the queries add, a score of
// each key that no query changes, is not part of that map: it keeps a dimension of its own. What those of the
// keys add is the same for all keys of a query, and softmax does not see it.
void cut_qk(Weights& w, BranchSpec& branch) {
  AttentionSpec& a = *branch.attention();
  const Folded norm = norm_before(w, branch, false), key_norm = norm_before(w, branch, true);
  const at::Tensor like = w.get("attn.W_Q");
  const at::Tensor W_Q = per_head(like, a.heads, a.heads),
                   W_K = per_head(w.get("attn.W_K"), a.kv_heads, a.heads);
  const at::Tensor q = W_Q * norm.gain, k = W_K * key_norm.gain;  // [H, d_qk, d]
  const auto put = [&](const char* name, const at::Tensor& heads) {
    w.set(name, heads.flatten(0, 1).to(like.scalar_type()).contiguous());
  };
  const int64_t r = a.truncate_qk;
  // Where positions or norms stand between the two maps, each is cut for itself.
  const bool turned = (!a.rotary_frequencies.empty() && a.positions) || a.qk_norm.acts();
  if (turned ||
      !attention_variant(a.variant).only_tokens) {  // positions stand between the two: each side alone
    put("attn.W_Q", cut(q, r) * norm.inverse);
    put("attn.W_K", cut(k, r) * key_norm.inverse);
    if (w.has("attn.b_K")) put("attn.b_K", bias_by_head(w, "attn.b_K", a.kv_heads, a, q).squeeze(-1));
    return;
  }
  Factors f = cut_product(q, k, r);
  at::Tensor own = at::zeros({a.heads, a.d_qk, 1}, q.options());  // biases of the new queries
  const at::Tensor b_Q = bias_by_head(w, "attn.b_Q", a.heads, a, q) + W_Q.matmul(norm.bias.unsqueeze(1));
  own.select(1, r).fill_(1.0);
  f.right.select(1, r).copy_(b_Q.transpose(1, 2).matmul(k).squeeze(1));
  const at::Tensor left = f.left * norm.inverse;
  put("attn.W_Q", left);
  put("attn.W_K", f.right * key_norm.inverse);
  w.set("attn.b_Q", (own - left.matmul(norm.bias.unsqueeze(1))).flatten().to(like.scalar_type()));
  w.set("attn.b_K", at::zeros({a.heads * a.d_qk}, like.options()));
  if (!a.bias) {  // the values still have none
    a.bias = true;
    if (!w.has("attn.b_V")) w.set("attn.b_V", at::zeros({a.kv_heads * a.d_v}, like.options()));
  }
  a.key_bias = true;
}

// Cuts the map W_O W_V as the normalised tokens meet it. What biases make heads carry goes into the output's
// bias. Values of another stream have not been through the norm.
void cut_ov(Weights& w, BranchSpec& branch) {
  AttentionSpec& a = *branch.attention();
  const Folded norm = norm_before(w, branch, true);
  const at::Tensor W_O = w.get("attn.W_O");  // [d, H * d_v]
  const int64_t d = W_O.size(0);
  const at::Tensor o = W_O.to(at::kDouble).view({d, a.heads, a.d_v}).permute({1, 2, 0});  // [H, d_v, d]
  const at::Tensor W_V = per_head(w.get("attn.W_V"), a.kv_heads, a.heads), shift = norm.bias.unsqueeze(1);
  Factors f = cut_product(o, W_V * norm.gain, a.truncate_ov);
  const at::Tensor right = f.right * norm.inverse;  // [H, d_v, d]
  const bool shifted = norm.bias.count_nonzero().item<int64_t>() > 0;
  if (w.has("attn.b_V") || shifted) {
    at::Tensor carried = W_V.matmul(shift);  // [H, d_v, 1]: what the norm's bias and b_V add
    if (w.has("attn.b_V")) carried = carried + per_head(w.get("attn.b_V").unsqueeze(1), a.kv_heads, a.heads);
    const at::Tensor kept =
        f.left.transpose(1, 2).matmul(right.matmul(shift));  // what still comes through the cut map
    const at::Tensor rest = (o.transpose(1, 2).matmul(carried) - kept).squeeze(2);  // [H, d]
    const at::Tensor own = at::zeros({a.heads, a.d_v}, o.options());                // the new b_V
    if (a.sinks) {  // rows sum to less than one: it keeps a dimension of its own
      own.select(1, a.truncate_ov).fill_(1.0);
      f.left.select(1, a.truncate_ov).copy_(rest);
      a.bias = true;  // queries and keys that had none still have none
    } else {
      const at::Tensor moved = rest.sum(0).to(W_O.scalar_type()) / a.modules;
      w.set("attn.b_O", w.has("attn.b_O") ? w.get("attn.b_O") + moved : moved);
      a.output_bias = true;
    }
    if (a.sinks || w.has("attn.b_V")) w.set("attn.b_V", own.flatten().to(W_O.scalar_type()));
  }
  w.set("attn.W_O",
        f.left.permute({2, 0, 1}).reshape({d, a.heads * a.d_v}).to(W_O.scalar_type()).contiguous());
  w.set("attn.W_V", right.flatten(0, 1).to(W_O.scalar_type()).contiguous());
}

// Repeats shared keys or values, so that both sides have one per query head.
void expand(Weights& w, const char* W, const char* b, const AttentionSpec& a) {
  const at::Tensor stored = w.get(W);
  if (stored.size(0) == a.heads * a.d_qk && stored.size(0) == a.heads * a.d_v && a.kv_heads == a.heads)
    return;
  w.set(W, per_head(stored, a.kv_heads, a.heads).flatten(0, 1).to(stored.scalar_type()));
  if (w.has(b))
    w.set(b, per_head(w.get(b).unsqueeze(1), a.kv_heads, a.heads).flatten().to(stored.scalar_type()));
}

// The gains that each key head, or all of them together, have of their own.
void expand_key_norm(Weights& w, const AttentionSpec& a) {
  if (a.qk_norm_span == NormSpan::head || a.kv_heads == a.heads) return;
  for (const char* name : {"attn.k_norm.w", "attn.k_norm.b"})
    if (w.has(name))
      w.set(name,
            per_head(w.get(name).unsqueeze(1), a.kv_heads, a.heads).flatten().to(w.get(name).scalar_type()));
}

}  // namespace

namespace {

bool is_cut(const BranchSpec& b) {
  return b.attention() && (b.attention()->truncate_qk > 0 || b.attention()->truncate_ov > 0);
}

void require_maps(const Weights& weights, const BranchSpec& branch) {
  const Program program = program_of(branch, weights.get("attn.W_O").size(0));
  if (!branch.attention()->value_map || !program.writes_heads() || !program.maps_tokens())
    throw Error(fmt::format("what stands between the heads of the part {} and their output map is no part of "
                            "a map, so none is cut",
                            branch.part.name))
        .hint("leave --rank out");
}

// The weights of a block whose only branch is an attention "attn"; its words say what has changed.
Weights truncated_alone(const Weights& weights, BranchSpec& branch) {
  require_maps(weights, branch);
  AttentionSpec& a = *branch.attention();
  Weights w = weights.shallow_copy();
  if (a.truncate_qk > 0)
    cut_qk(w, branch);
  else
    expand(w, "attn.W_K", "attn.b_K", a);
  if (a.truncate_ov > 0)
    cut_ov(w, branch);
  else
    expand(w, "attn.W_V", "attn.b_V", a);
  expand_key_norm(w, a);
  a.kv_heads = a.heads;
  return w;
}

}  // namespace

Weights with_kv_latent(const Weights& weights, const BlockSpec& block, int64_t rank) {
  const BranchSpec& branch = *block.attention_branch();
  require_maps(weights, branch);
  const AttentionSpec& a = *branch.attention();
  Weights w = weights.shallow_copy();
  const Folded norm = norm_before(w, branch, true);
  const at::Tensor W_K = w.get("attn.W_K"), W_V = w.get("attn.W_V");
  const at::Tensor k = per_head(W_K, a.kv_heads, a.kv_heads), v = per_head(W_V, a.kv_heads, a.kv_heads);
  const at::Tensor both = cut(at::cat({k, v}, 1) * norm.gain, rank) * norm.inverse;  // [KV, d_qk + d_v, d]
  const auto put = [&](const char* name, const char* bias, const at::Tensor& now, const at::Tensor& before) {
    const at::Tensor stored = w.get(name);
    w.set(name, now.flatten(0, 1).to(stored.scalar_type()).contiguous());
    if (w.has(bias))  // what the norm's bias adds through the map stays
      w.set(bias, (w.get(bias).to(at::kDouble) + (before - now).matmul(norm.bias).flatten())
                      .to(stored.scalar_type()));
  };
  put("attn.W_K", "attn.b_K", both.narrow(1, 0, k.size(1)), k);
  put("attn.W_V", "attn.b_V", both.narrow(1, k.size(1), v.size(1)), v);
  return w;
}

bool is_truncated(const BlockSpec& block) {
  return std::any_of(block.branches.begin(), block.branches.end(), is_cut);
}

Weights truncated(const Weights& weights, BlockSpec& block) {
  Weights w = weights.shallow_copy();
  for (BranchSpec& branch : block.branches) {
    if (!is_cut(branch)) continue;
    BranchSpec alone = attention_alone(block, branch.name).branches.front();
    const Weights cut = truncated_alone(attention_alone(weights, branch), alone);
    branch.part = alone.part;
    for (const char* name : {"W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O", "k_norm.w", "k_norm.b"})
      if (const std::string from = fmt::format("attn.{}", name); cut.has(from))
        w.set(fmt::format("{}.{}", branch.name, name), cut.get(from));
  }
  return w;
}

}  // namespace rankscope
