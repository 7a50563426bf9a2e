// Softmax and doubly normalised attention, mixed by a learned share u = sigmoid(mix) per head: columns sum to
// at least u / keys. parts/hybrid_attention.cpp owns the parameter.
#include <ATen/ATen.h>

#include "attention/support/sinkhorn.h"

namespace rankscope {
namespace {

class Hybrid : public PreparedAttention {
 public:
  explicit Hybrid(const AttentionInput& in)
      : scores_(in),
        doubly_(prepare_prefix_normalised(in)),
        u_(at::sigmoid(in.weights.get(in.name + ".mix")).view({1, -1, 1, 1})) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const at::Tensor over_keys =
        masked_softmax(scores_.tile(first, count, first_row, rows), scores_.spec(), first_row);
    return u_ * doubly_->pattern(first, count, first_row, rows) + (1 - u_) * over_keys;
  }

 private:
  Scores scores_;
  std::unique_ptr<PreparedAttention> doubly_;
  at::Tensor u_;  // [1, H, 1, 1]
};

}  // namespace

extern const AttentionVariant attention_hybrid_normalised{
    .name = "hybrid_normalised",
    .summary = "u times doubly_normalised plus 1 - u times softmax, u learned per head",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Hybrid>(in);
    }};

}  // namespace rankscope
