#include "model/block.h"

#include <algorithm>

#include "attention/variant.h"
#include "model/norm.h"

namespace rankscope {
namespace {

constexpr int64_t kTileBytes = 4 << 20;  // a pattern tile stays near the size of the last cache
constexpr int64_t kMlpTokens = 512;      // the hidden layer of this many tokens at a time

// How many samples behind `first` share its length.
int64_t same_length(const Batch& batch, int64_t first) {
  int64_t last = first;
  while (last < batch.count() && batch.length(last) == batch.length(first)) ++last;
  return last - first;
}

class Attention {
 public:
  Attention(const BlockSpec& block, const Weights& weights, const Batch& batch, BlockObserver& observer)
      : spec_(block.attention), weights_(weights), batch_(batch), observer_(observer) {}

  /// Attention times values, [N, H, d_v], for what attention reads, [N, d].
  at::Tensor run(const at::Tensor& x) {
    const int64_t N = x.size(0);
    const auto project = [&](const char* W, const char* b, int64_t heads, int64_t d) {
      return at::linear(x, weights_.get(W), weights_.get_or_none(b)).view({N, heads, d});
    };
    q_ = project("attn.W_Q", "attn.b_Q", spec_.heads, spec_.d_qk);
    k_ = project("attn.W_K", "attn.b_K", spec_.kv_heads, spec_.d_qk);
    v_ = project("attn.W_V", "attn.b_V", spec_.kv_heads, spec_.d_v);
    z_ = at::empty({N, spec_.heads, spec_.d_v}, x.options());
    for (int64_t s = 0; s < batch_.count();) {
      const int64_t T = batch_.length(s);
      const int64_t bytes = spec_.heads * T * T * x.element_size();
      const int64_t room = std::max<int64_t>(1, kTileBytes / std::max<int64_t>(1, bytes));
      const int64_t count = std::min(same_length(batch_, s), room);
      group(s, count, T);
      s += count;
    }
    for (const int64_t h : spec_.heads_off) z_.select(1, h).zero_();
    return z_;
  }

 private:
  // `count` samples of length T, starting at sample `first`.
  void group(int64_t first, int64_t count, int64_t T) {
    const int64_t begin = batch_.offsets[static_cast<size_t>(first)];
    const auto slice = [&](const at::Tensor& x) {
      return x.narrow(0, begin, count * T).view({count, T, x.size(1), x.size(2)});
    };
    const auto integers = [&](const std::vector<int64_t>& values) {
      return at::tensor(at::ArrayRef<int64_t>(values.data() + begin, static_cast<size_t>(count * T)),
                        at::kLong)
          .view({count, T})
          .to(q_.device());
    };
    const at::Tensor positions = integers(batch_.positions);
    const at::Tensor types = batch_.has_types ? integers(batch_.types) : at::Tensor();
    const at::Tensor q = slice(q_), k = slice(k_);
    const at::Tensor v = heads_first(slice(v_), spec_.heads);  // [count * H, T, d_v]
    const auto attention =
        attention_variant(spec_.variant).prepare({spec_, weights_, q, k, positions, types});
    const int64_t step = T <= kWholePattern ? T : tile_rows(T);
    at::Tensor z = slice(z_);
    for (int64_t row = 0; row < T; row += step) {
      const int64_t rows = std::min(step, T - row);
      const at::Tensor pattern = attention->pattern(0, count, row, rows);
      if (observer_.wants_pattern()) observer_.pattern(pattern, first, row);
      const at::Tensor out = at::bmm(pattern.view({count * spec_.heads, rows, T}), v);
      z.narrow(1, row, rows).copy_(out.view({count, spec_.heads, rows, spec_.d_v}).transpose(1, 2));
    }
  }

  int64_t tile_rows(int64_t T) const {
    return std::clamp<int64_t>(kTileBytes / (spec_.heads * T * q_.element_size()), 1, T);
  }

  const AttentionSpec& spec_;
  const Weights& weights_;
  const Batch& batch_;
  BlockObserver& observer_;
  at::Tensor q_, k_, v_, z_;
};

at::Tensor mlp(const at::Tensor& x, const MlpSpec& spec, const Weights& w) {
  if (spec.kind == MlpKind::activation) return apply_activation(x.clone(), spec.activation);
  at::Tensor out = at::empty({x.size(0), w.get("mlp.W_out").size(0)}, x.options());
  for (int64_t first = 0; first < x.size(0); first += kMlpTokens) {
    const int64_t count = std::min(kMlpTokens, x.size(0) - first);
    const at::Tensor part = x.narrow(0, first, count);
    at::Tensor hidden = at::linear(part, w.get("mlp.W_in"), w.get_or_none("mlp.b_in"));
    if (spec.kind == MlpKind::gated) {
      const at::Tensor gate = at::linear(part, w.get("mlp.W_gate"), w.get_or_none("mlp.b_gate"));
      hidden.mul_(apply_activation(gate, spec.activation));
    } else {
      hidden = apply_activation(hidden, spec.activation);
    }
    out.narrow(0, first, count).copy_(at::linear(hidden, w.get("mlp.W_out"), w.get_or_none("mlp.b_out")));
  }
  return out;
}

bool reads_norm(const BlockSpec& block) { return block.norm.place == NormPlace::pre; }

}  // namespace

at::Tensor attention_output(const at::Tensor& x, const BlockSpec& block, const Weights& weights,
                            const Batch& batch, BlockObserver& observer) {
  const at::Tensor read = reads_norm(block) ? apply_norm(x, block.norm, weights, "ln1") : x;
  if (reads_norm(block)) observer.normalized(read);
  const at::Tensor z = Attention(block, weights, batch, observer).run(read);
  const at::Tensor& W_O = weights.get("attn.W_O");
  if (observer.wants_heads()) observer.heads(z, W_O, x);
  return at::linear(z.flatten(1), W_O, weights.get_or_none("attn.b_O"));
}

at::Tensor after_attention(const at::Tensor& x, at::Tensor written, const BlockSpec& block,
                           const Weights& weights) {
  if (block.attention_skip) written.add_(x);
  return reads_norm(block) ? written : apply_norm(written, block.norm, weights, "ln1");
}

at::Tensor mlp_output(const at::Tensor& u, const BlockSpec& block, const Weights& weights) {
  return mlp(reads_norm(block) ? apply_norm(u, block.norm, weights, "ln2") : u, block.mlp, weights);
}

at::Tensor after_mlp(const at::Tensor& u, at::Tensor written, const BlockSpec& block,
                     const Weights& weights) {
  if (block.mlp_skip) written.add_(u);
  return reads_norm(block) ? written : apply_norm(written, block.norm, weights, "ln2");
}

at::Tensor run_block(const at::Tensor& x, const BlockSpec& block, const Weights& weights, const Batch& batch,
                     BlockObserver& observer) {
  const at::Tensor u =
      after_attention(x, attention_output(x, block, weights, batch, observer), block, weights);
  return block.mlp.kind == MlpKind::none ? u : after_mlp(u, mlp_output(u, block, weights), block, weights);
}

}  // namespace rankscope
