// Sigmoid attention (Ramapuram et al. 2024): every key is taken or left on its own account, by
// sigmoid(score - log n).
#include <cmath>

#include "attention/support/scores.h"

namespace rankscope {
namespace {

class Sigmoid : public PreparedAttention {
 public:
  explicit Sigmoid(const AttentionInput& in) : scores_(in), log_keys_(number_option(in.spec, "log_keys")) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    at::Tensor scores = scores_.tile(first, count, first_row, rows);
    const auto keys = static_cast<double>(scores_.keys());
    const at::Tensor hidden = hidden_keys(scores_.spec(), first_row, rows, scores_.keys(), scores);
    if (hidden.defined()) scores = scores.masked_fill(hidden, -INFINITY);
    if (kept != nullptr) *kept = scores;
    if (!hidden.defined()) return at::sigmoid(scores - log_keys_ * std::log(keys));
    const at::Tensor seen = at::log(keys - hidden.sum(-1, true).to(scores.scalar_type()));  // [rows, 1]
    return at::sigmoid(scores - log_keys_ * seen);
  }

 private:
  Scores scores_;
  double log_keys_;
};

}  // namespace

extern const AttentionVariant attention_sigmoid{
    .name = "sigmoid",
    .summary = "sigmoid(score - log n): keys do not compete, rows sum to what they sum to",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = true,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Sigmoid>(in);
    },
    .shares = false,
    .options = {{.name = "log_keys",
                 .otherwise = "1",
                 .low = 0,
                 .high = 2,
                 .meaning = "how many times log n, n the keys that a query sees, is taken off the scores"}}};

}  // namespace rankscope
