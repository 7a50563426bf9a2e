// Linear attention without a softmax: the score itself multiplies the value, q_i . k_j. Run one token after
// another it is a state S += k v^T that every query reads, so its matrix has rank d at most without a mask,
// and its cost can grow with the number of tokens alone.
#include <ATen/ATen.h>

#include <algorithm>

#include "attention/support/scores.h"
#include "ops/linear_attention.h"

namespace rankscope {
namespace {

class Linear : public PreparedAttention {
 public:
  explicit Linear(const AttentionInput& in) : scores_(in) {}
  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const at::Tensor scores = scores_.products(first, count, first_row, rows);
    const at::Tensor hidden = hidden_keys(scores_.spec(), first_row, rows, scores_.keys(), scores);
    return hidden.defined() ? scores.masked_fill(hidden, 0.0) : scores;
  }

 private:
  Scores scores_;
};

at::Tensor linear_output(const AttentionInput& in, const at::Tensor& v) {
  if (in.spec.window > 0) return {};
  const Scores scores(in);
  const at::Tensor q = scores.q() * in.spec.scale;
  if (in.spec.causal) return linear_attention(q, scores.k(), v, {});
  if (scores.keys() <= in.spec.d_qk) return {};
  return at::bmm(q, at::bmm(scores.k().transpose(1, 2), v));
}

}  // namespace

extern const AttentionVariant attention_linear{
    .name = "linear",
    .summary = "q . k / sqrt(d) as it is: a state that adds up k v^T, rank at most d",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Linear>(in);
    },
    .shares = false,
    .rank_law = "at most d without a mask, d the width of a query",
    .rank_ceiling =
        [](const AttentionSpec& spec, int64_t tokens) {
          return spec.causal || spec.window > 0 ? tokens : std::min(spec.d_qk, tokens);
        },
    .output = linear_output};

}  // namespace rankscope
