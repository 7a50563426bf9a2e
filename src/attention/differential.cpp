// Differential attention (Ye et al. 2024): two softmaxes over the halves of queries and keys, the second
// taken off, softmax_1 - lambda softmax_2, lambda = exp(l_q1 . l_k1) - exp(l_q2 . l_k2) + start. What both
// give to every key alike cancels. parts/differential_attention.cpp owns the four vectors.
#include <ATen/ATen.h>

#include "attention/support/scores.h"
#include "base/error.h"

namespace rankscope {
namespace {

// A head is two of half the width, so that positions turn each half by itself.
AttentionSpec halved(const AttentionSpec& spec) {
  AttentionSpec out = spec;
  out.variant = "softmax";
  out.heads *= 2;
  out.kv_heads *= 2;
  out.d_qk /= 2;
  if (spec.d_qk % 2 != 0 || 2 * static_cast<int64_t>(spec.rotary_frequencies.size()) > out.d_qk)
    throw Error(
        "differential attention halves queries and keys: their width must be even, and half of it hold the "
        "rotated pairs");
  return out;
}

class Differential : public PreparedAttention {
 public:
  explicit Differential(const AttentionInput& in)
      : spec_(halved(in.spec)),
        scores_({spec_, in.weights, in.name, in.q.flatten(2).unflatten(2, {spec_.heads, spec_.d_qk}),
                 in.k.flatten(2).unflatten(2, {spec_.kv_heads, spec_.d_qk}), in.positions, in.key_positions,
                 in.types}) {
    const auto vector = [&](const char* name) { return in.weights.get(in.name + "." + name); };
    lambda_ = at::exp((vector("lambda_q1") * vector("lambda_k1")).sum()) -
              at::exp((vector("lambda_q2") * vector("lambda_k2")).sum()) + number_option(in.spec, "start");
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const at::Tensor both = masked_softmax(scores_.tile(first, count, first_row, rows), spec_, first_row)
                                .unflatten(1, {spec_.heads / 2, 2});
    return both.select(2, 0) - lambda_ * both.select(2, 1);
  }

 private:
  AttentionSpec spec_;
  Scores scores_;
  at::Tensor lambda_;
};

}  // namespace

extern const AttentionVariant attention_differential{
    .name = "differential",
    .summary =
        "the difference of two softmaxes over halves of queries and keys, the second times a learned lambda",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Differential>(in);
    },
    .shares = false,
    .options = {{.name = "start",
                 .otherwise = "0.8",
                 .low = 0,
                 .high = 1,
                 .meaning = "of lambda where its vectors are zero (the paper: 0.8 - 0.6 exp(-0.3 layer))"}}};

}  // namespace rankscope
