// Softmax with one more key that has no value and a fixed score: a query can look at nothing. With score 0
// this is "softmax plus one", exp(s) / (1 + sum exp(s)). (A learned score is AttentionSpec::sinks, as in
// gpt-oss.)
#include "attention/support/scores.h"

namespace rankscope {
namespace {

class SinkColumn : public PreparedAttention {
 public:
  explicit SinkColumn(const AttentionInput& in)
      : scores_(in), sink_(at::full({in.spec.heads}, number_option(in.spec, "score"), in.q.options())) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    return masked_softmax(scores_.tile(first, count, first_row, rows), scores_.spec(), first_row, kept,
                          sink_);
  }

 private:
  Scores scores_;
  at::Tensor sink_;
};

}  // namespace

extern const AttentionVariant attention_sink_column{
    .name = "sink_column",
    .summary = "softmax beside a key of fixed score that has no value: a query may look at nothing",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = true,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<SinkColumn>(in);
    },
    .options = {{.name = "score",
                 .otherwise = "0",
                 .low = -100,
                 .high = 100,
                 .meaning = "of the key without a value, in nats"}}};

}  // namespace rankscope
