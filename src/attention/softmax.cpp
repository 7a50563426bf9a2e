// softmax(scale Q K^T): the attention of nearly every model.
#include "attention/support/scores.h"

namespace rankscope {
namespace {

class Softmax : public PreparedAttention {
 public:
  explicit Softmax(const AttentionInput& in) : scores_(in) {
    if (in.spec.sinks) sinks_ = in.weights.get(in.name + ".sinks");
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    return masked_softmax(scores_.tile(first, count, first_row, rows), scores_.spec(), first_row, kept,
                          sinks_);
  }

 private:
  Scores scores_;
  at::Tensor sinks_;  // [H]
};

std::unique_ptr<PreparedAttention> prepare_softmax(const AttentionInput& in) {
  return std::make_unique<Softmax>(in);
}

}  // namespace

extern const AttentionVariant attention_softmax{
    .name = "softmax",
    .summary = "softmax(scale Q K^T), causal or not, with rotary positions where the model has them",
    .row_stochastic = true,
    .only_tokens = true,
    .own_tokens_only = false,
    .has_scores = true,
    .prepare = prepare_softmax};

}  // namespace rankscope
