// Heads of one layer in groups that attend in different ways (Multiformer, Sant et al. 2022): full, local,
// compressed, or by another file of attention/. spec/head_groups.h says who is who;
// parts/mixed_attention.cpp owns the filters of compressed heads.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "attention/ceiling.h"
#include "attention/support/scores.h"
#include "base/error.h"
#include "spec/head_groups.h"

namespace rankscope {
namespace {

constexpr int64_t kWholeTokens = 512;  // a matrix of more is made in tiles

at::Tensor padded_tokens(const at::Tensor& x, int64_t before, int64_t after) {  // [.., T, d]
  return at::constant_pad_nd(x, {0, 0, before, after});
}

// Softmax over a query's own block of keys, the one before and the one behind.
class LocalHeads : public PreparedAttention {
 public:
  LocalHeads(const AttentionInput& in, int64_t block) : scores_(in), block_(block) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    at::Tensor scores = scores_.tile(first, count, first_row, rows);
    const auto options = scores.options().dtype(at::kLong).requires_grad(false);
    const auto blocks = [&](int64_t from, int64_t n) {
      return at::floor_divide(at::arange(from, from + n, options), block_);
    };
    at::Tensor hidden =
        (blocks(first_row, rows).unsqueeze(1) - blocks(0, scores_.keys()).unsqueeze(0)).abs() > 1;
    const at::Tensor masked = hidden_keys(scores_.spec(), first_row, rows, scores_.keys(), scores);
    if (masked.defined()) hidden = hidden.logical_or(masked);
    return softmax_seen(std::move(scores), hidden, nullptr, {});
  }

 private:
  Scores scores_;
  int64_t block_;
};

// The same, block by block: the cost is that of the window.
at::Tensor local_output(const AttentionInput& in, const at::Tensor& v, int64_t b) {
  const Scores scores(in);
  const int64_t N = v.size(0), T = scores.keys(), blocks = (T + b - 1) / b, missing = blocks * b - T;
  const auto windows = [&](const at::Tensor& x) {  // [N * blocks, d, 3 b]
    return padded_tokens(x, b, missing + b).unfold(1, 3 * b, b).reshape({N * blocks, x.size(2), 3 * b});
  };
  const at::Tensor q =
      padded_tokens(scores.q() * in.spec.scale, 0, missing).reshape({N * blocks, b, in.spec.d_qk});
  const auto options = v.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor first = at::arange(0, blocks * b, b, options).view({-1, 1, 1}),
                   i = first + at::arange(b, options).view({1, -1, 1}),
                   j = first + at::arange(-b, 2 * b, options).view({1, 1, -1});
  at::Tensor hidden = j.lt(0).logical_or(j.ge(T)).expand({blocks, b, 3 * b});
  if (in.spec.causal) hidden = hidden.logical_or(j > i);
  const at::Tensor s = at::bmm(q, windows(scores.k())).view({N, blocks, b, 3 * b});
  const at::Tensor shares = at::softmax(s.masked_fill(hidden, -INFINITY), -1).view({N * blocks, b, 3 * b});
  return at::bmm(shares, windows(v).transpose(1, 2)).view({N, blocks * b, v.size(2)}).narrow(1, 0, T);
}

// A filter of each head slides over x [S * heads, T, d]: [S * heads, n_k, d].
at::Tensor slid_over(const at::Tensor& x, const at::Tensor& filter, const HeadGroups& by) {
  const int64_t T = x.size(1), d = x.size(2), heads = filter.size(0), before = by.padding();
  const at::Tensor seen =
      padded_tokens(x, before, by.padded(T) - before - T).unfold(1, by.kernel, by.stride);  // [.., n_k, d, k]
  const int64_t keys = seen.size(1), samples = x.size(0) / heads;
  return at::matmul(seen.reshape({samples, heads, keys * d, by.kernel}), filter.unsqueeze(-1))
      .view({x.size(0), keys, d});
}

// The same as a matrix: [heads, n_k, T], the filter of a head in every row, `stride` further from row to row.
at::Tensor as_matrix(const at::Tensor& filter, const HeadGroups& by, int64_t tokens) {
  const int64_t heads = filter.size(0), keys = by.compressed_keys(tokens), wide = by.padded(tokens);
  const at::Tensor out = at::zeros({heads, keys, wide}, filter.options());
  out.as_strided({heads, keys, by.kernel}, {keys * wide, wide + by.stride, 1})
      .copy_(filter.unsqueeze(1).expand({heads, keys, by.kernel}));
  return out.narrow(2, by.padding(), tokens);
}

// Softmax over keys that a filter made of a few each, of values that another made. A query under a causal
// mask sees a key when it has seen all that the key is made of; before the first it sees none.
class CompressedHeads : public PreparedAttention {
 public:
  CompressedHeads(const AttentionInput& in, const HeadGroup& group, const HeadGroups& by)
      : spec_(in.spec), by_(by), scores_(in) {
    const auto filter = [&](const char* name) {
      return in.weights.get(in.name + name).narrow(0, group.first, group.heads);
    };
    k_ = slid_over(scores_.k(), filter(".key_filter"), by);
    value_filter_ = filter(".value_filter");
  }

  // [count, heads, rows, T]
  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const int64_t T = scores_.keys();
    if (!map_.defined()) map_ = as_matrix(value_filter_, by_, T);
    const at::Tensor p = at::matmul(shares(first, count, first_row, rows), map_);
    const at::Tensor hidden = hidden_keys(spec_, first_row, rows, T, p);
    return hidden.defined() ? p.masked_fill(hidden, 0.0) : p;
  }

  at::Tensor output(const at::Tensor& v) {  // [S * heads, T, d_v]
    const at::Tensor p = shares(0, scores_.samples(), 0, scores_.queries());
    return at::bmm(p.flatten(0, 1), slid_over(v, value_filter_, by_));
  }

 private:
  // [count, heads, rows, n_k]
  at::Tensor shares(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
    const int64_t H = spec_.heads, keys = k_.size(1);
    const at::Tensor q = scores_.q().narrow(0, first * H, count * H).narrow(1, first_row, rows) * spec_.scale;
    at::Tensor s =
        at::bmm(q, k_.narrow(0, first * H, count * H).transpose(1, 2)).view({count, H, rows, keys});
    if (spec_.softcap > 0) s = at::tanh(s / spec_.softcap) * spec_.softcap;
    if (!spec_.causal) return at::softmax(s, -1);
    const auto options = s.options().dtype(at::kLong).requires_grad(false);
    const at::Tensor end = at::arange(keys, options) * by_.stride + (by_.kernel - 1 - by_.padding()),
                     hidden =
                         end.unsqueeze(0) > at::arange(first_row, first_row + rows, options).unsqueeze(1),
                     nothing = hidden.all(1, true);
    const at::Tensor p = at::softmax(s.masked_fill(hidden.logical_and(nothing.logical_not()), -INFINITY), -1);
    return p.masked_fill(hidden, 0.0);
  }

  const AttentionSpec& spec_;
  HeadGroups by_;
  Scores scores_;
  at::Tensor k_, value_filter_, map_;  // [S * heads, n_k, d_qk], [heads, kernel], [heads, n_k, T]
};

// Each group with a description and an input of its own; inputs are there as long as the whole's is,
// descriptions as long as this.
class Groups {
 public:
  explicit Groups(const AttentionInput& in) : in_(in), by_(head_groups(in.spec)) {
    if (in.q.size(1) != in.k.size(1))
      throw Error("mixed attention cannot look at another stream: its blocks and filters go by places");
    for (const HeadGroup& g : by_.groups) {
      const bool own = g.kind == "full" || g.kind == "local" || g.kind == "compressed";
      specs_.push_back(some_heads(in.spec, g.first, g.heads, own ? "softmax" : g.kind));
      q_.push_back(in.q.narrow(2, g.first, g.heads));
      k_.push_back(keys_of(g));
    }
  }

  const HeadGroups& by() const { return by_; }
  size_t size() const { return specs_.size(); }
  const HeadGroup& group(size_t i) const { return by_.groups[i]; }
  AttentionInput input(size_t i) const {
    return {specs_[i], in_.weights, in_.name, q_[i], k_[i], in_.positions, in_.key_positions, in_.types};
  }
  std::unique_ptr<PreparedAttention> prepared(size_t i) const {
    const std::string& kind = group(i).kind;
    if (kind == "local") return std::make_unique<LocalHeads>(input(i), by_.block());
    if (kind == "compressed") return std::make_unique<CompressedHeads>(input(i), group(i), by_);
    return attention_variant(specs_[i].variant).prepare(input(i));
  }

 private:
  at::Tensor keys_of(const HeadGroup& g) const {
    const int64_t each = in_.spec.heads / in_.spec.kv_heads;
    if (each == 1) return in_.k.narrow(2, g.first, g.heads);
    const auto options = in_.k.options().dtype(at::kLong).requires_grad(false);
    return in_.k.index_select(2, at::floor_divide(at::arange(g.first, g.first + g.heads, options), each));
  }

  const AttentionInput in_;
  HeadGroups by_;
  std::deque<AttentionSpec> specs_;  // what is prepared refers to them
  std::vector<at::Tensor> q_, k_;
};

class MixedHeads : public PreparedAttention {
 public:
  explicit MixedHeads(const AttentionInput& in) : groups_(in) {
    for (size_t i = 0; i < groups_.size(); ++i) ready_.push_back(groups_.prepared(i));
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    std::vector<at::Tensor> all;
    for (const auto& one : ready_) all.push_back(one->pattern(first, count, first_row, rows));
    return at::cat(all, 1);
  }

 private:
  Groups groups_;
  std::vector<std::unique_ptr<PreparedAttention>> ready_;
};

// [S * heads, T, d_v] of one group; undefined where the whole matrix would be too large to hold.
at::Tensor group_output(const Groups& groups, size_t i, const at::Tensor& v) {
  const HeadGroup& g = groups.group(i);
  const AttentionInput in = groups.input(i);
  const int64_t T = v.size(1), b = groups.by().block();
  if (g.kind == "local" && T > 3 * b) return local_output(in, v, b);
  if (g.kind == "compressed") return CompressedHeads(in, g, groups.by()).output(v);
  const AttentionVariant& variant = attention_variant(in.spec.variant);
  if (variant.output != nullptr)
    if (const at::Tensor z = variant.output(in, v); z.defined()) return z;
  if (T > kWholeTokens) return {};
  return at::bmm(groups.prepared(i)->pattern(0, v.size(0) / g.heads, 0, T).flatten(0, 1), v);
}

at::Tensor mixed_output(const AttentionInput& in, const at::Tensor& v) {
  const AttentionSpec& a = in.spec;
  if (a.window > 0 || a.softcap > 0 || (a.positions && !a.alibi.empty())) return {};
  const Groups groups(in);
  const int64_t samples = v.size(0) / a.heads, T = v.size(1), d = v.size(2);
  const at::Tensor heads = v.view({samples, a.heads, T, d});
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < groups.size(); ++i) {
    const HeadGroup& g = groups.group(i);
    const at::Tensor z =
        group_output(groups, i, heads.narrow(1, g.first, g.heads).reshape({samples * g.heads, T, d}));
    if (!z.defined()) return {};
    all.push_back(z.view({samples, g.heads, T, d}));
  }
  return at::cat(all, 1).view({samples * a.heads, T, d});
}

VariantOption count_of(std::string_view kind, std::string_view meaning) {
  return {.name = kind, .otherwise = "0", .low = 0, .high = kMostGroupHeads, .meaning = meaning};
}

std::vector<VariantOption> options_of_groups() {
  std::vector<VariantOption> out{{.name = "window",
                                  .otherwise = "64",
                                  .low = 3,
                                  .high = kWidestWindow,
                                  .meaning = "of local heads: three blocks"},
                                 {.name = "kernel",
                                  .otherwise = "5",
                                  .low = 1,
                                  .high = kLongestFilter,
                                  .meaning = "of compressed heads"},
                                 {.name = "stride",
                                  .otherwise = "2",
                                  .low = 1,
                                  .high = kLongestFilter,
                                  .meaning = "of compressed heads"}};
  for (const std::string& kind : head_group_kinds())
    out.push_back(count_of(kind, "so many heads of this kind"));
  return out;
}

}  // namespace

extern const AttentionVariant attention_mixed{
    .name = "mixed",
    .summary = "heads in groups: full, local, compressed or of another kind, in one layer",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = true,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<MixedHeads>(in);
    },
    .shares = false,
    .options = options_of_groups(),
    .rank_law =
        "of a compressed head at most its number of keys, about n / stride; local heads may have full rank",
    .rank_ceiling =
        [](const AttentionSpec& spec, int64_t tokens) {
          int64_t most = 0;
          for (int64_t h = 0; h < spec.heads; ++h)
            most = std::max(most, rank_ceiling(spec, h, tokens).value_or(tokens));
          return most;
        },
    .output = mixed_output};

}  // namespace rankscope
