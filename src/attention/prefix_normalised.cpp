// Doubly normalised attention that may be causal: a key is shared out among the queries up to the one that
// asks,
//   v_ij = log sum_{i' <= i} exp(s_i'j),  pattern = softmax_j(s_ij - v_ij).
// The guarantee of doubly_normalised does not carry over. Without a causal mask a query sees all others, and
// this is doubly_normalised.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "attention/support/sinkhorn.h"

namespace rankscope {
namespace {

class Prefix : public PreparedAttention {
 public:
  explicit Prefix(const AttentionInput& in) : scores_(in) {
    if (!in.spec.causal) all_.emplace(in, 1);
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    if (all_) return all_->pattern(first, count, first_row, rows);
    // Sums over the rows before this tile, then one by one inside.
    at::Tensor before;
    for (int64_t row = 0; row < first_row; row += kRows) {
      const at::Tensor part =
          at::logsumexp(seen(first, count, row, std::min(kRows, first_row - row)), {2}, true);
      before = before.defined() ? at::logaddexp(before, part) : part;
    }
    const at::Tensor scores = seen(first, count, first_row, rows);
    at::Tensor v = at::logcumsumexp(scores.masked_fill(scores.eq(-INFINITY), kNothing), 2);
    if (before.defined()) v = at::logaddexp(v, before);
    return masked_softmax(scores_.tile(first, count, first_row, rows) - v, scores_.spec(), first_row);
  }

 private:
  static constexpr int64_t kRows = 256;
  static constexpr double kNothing = -1e30;  // exp of it is 0, and differences stay numbers

  at::Tensor seen(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
    const at::Tensor scores = scores_.tile(first, count, first_row, rows);
    const at::Tensor hidden = hidden_keys(scores_.spec(), first_row, rows, scores_.keys(), scores);
    return hidden.defined() ? scores.masked_fill(hidden, kNothing) : scores;
  }

  Scores scores_;
  std::optional<DoublyNormalised> all_;  // where there is no mask
};

}  // namespace

extern const AttentionVariant attention_prefix_normalised{
    .name = "prefix_normalised",
    .summary = "doubly_normalised over earlier queries only: the form that may be causal",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Prefix>(in);
    }};

}  // namespace rankscope
