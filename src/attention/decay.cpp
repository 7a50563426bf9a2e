// Linear attention that forgets (retention, Sun et al. 2023): q_i . k_j times g^|i - j|, a state S = g S + k
// v^T. Head h of H keeps g = 1 - 2^-e with e from `slowest` down to `fastest` over the heads, evenly.
#include <ATen/ATen.h>

#include <cmath>

#include "attention/support/scores.h"
#include "ops/linear_attention.h"

namespace rankscope {
namespace {

// log g of every head, [H].
at::Tensor log_keep(const AttentionInput& in) {
  const double slowest = number_option(in.spec, "slowest"), fastest = number_option(in.spec, "fastest");
  std::vector<double> logs;
  for (int64_t h = 0; h < in.spec.heads; ++h) {
    const double at = in.spec.heads > 1 ? static_cast<double>(h) / static_cast<double>(in.spec.heads - 1) : 0;
    logs.push_back(std::log1p(-std::exp2(-(slowest + at * (fastest - slowest)))));
  }
  return at::tensor(logs, at::kDouble).to(in.q.device());
}

class Decay : public PreparedAttention {
 public:
  explicit Decay(const AttentionInput& in)
      : scores_(in),
        positions_(in.positions),
        key_positions_(in.key_positions),
        log_keep_(log_keep(in).view({1, -1, 1, 1})) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const AttentionSpec& spec = scores_.spec();
    at::Tensor scores = scores_.products(first, count, first_row, rows);
    if (spec.positions) {
      const at::Tensor here = positions_.narrow(0, first, count).narrow(1, first_row, rows).to(at::kDouble);
      const at::Tensor there = key_positions_.narrow(0, first, count).to(at::kDouble);
      const at::Tensor away =
          (here.unsqueeze(2) - there.unsqueeze(1)).abs().unsqueeze(1);  // [S, 1, rows, T']
      scores = scores * at::exp(away * log_keep_).to(scores.scalar_type());
    }
    const at::Tensor hidden = hidden_keys(spec, first_row, rows, scores_.keys(), scores);
    return hidden.defined() ? scores.masked_fill(hidden, 0.0) : scores;
  }

 private:
  Scores scores_;
  at::Tensor positions_, key_positions_;
  at::Tensor log_keep_;  // [1, H, 1, 1]
};

at::Tensor decay_output(const AttentionInput& in, const at::Tensor& v) {
  if (!in.spec.causal || in.spec.window > 0) return {};
  const Scores scores(in);
  at::Tensor keep;
  if (in.spec.positions) {
    // What is kept from a token to the next; the first keeps nothing that there is.
    const at::Tensor p = in.positions.to(at::kDouble);
    const at::Tensor steps = p - at::cat({p.narrow(1, 0, 1), p.narrow(1, 0, p.size(1) - 1)}, 1);  // [S, T]
    keep = at::exp(steps.unsqueeze(1) * log_keep(in).view({1, -1, 1})).flatten(0, 1).to(v.scalar_type());
  }
  return linear_attention(scores.q() * in.spec.scale, scores.k(), v, keep);
}

}  // namespace

extern const AttentionVariant attention_decay{
    .name = "decay",
    .summary = "q . k / sqrt(d) times g^distance: a state that forgets, each head at a rate of its own",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Decay>(in);
    },
    .shares = false,
    .options =
        {{.name = "slowest",
          .otherwise = "8",
          .low = 0.1,
          .high = 30,
          .meaning = "the first head keeps 1 - 2^-slowest of its state a token"},
         {.name = "fastest", .otherwise = "5", .low = 0.1, .high = 30, .meaning = "the last head likewise"}},
    .output = decay_output};

}  // namespace rankscope
