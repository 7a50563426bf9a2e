// Doubly normalised attention (Ding et al. 2020): every key is shared out among the queries first, so that
// none is "explained away" by a key that all queries prefer. Its columns sum to at least 1 / keys, and a bias
// that all scores of a key share changes nothing.
#include "attention/support/sinkhorn.h"

namespace rankscope {
namespace {

class Doubly : public PreparedAttention {
 public:
  explicit Doubly(const AttentionInput& in) : doubly_(in, 1) {}
  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    return doubly_.pattern(first, count, first_row, rows);
  }

 private:
  DoublyNormalised doubly_;
};

}  // namespace

extern const AttentionVariant attention_doubly_normalised{
    .name = "doubly_normalised",
    .summary = "softmax over queries, then shares over keys: no key is explained away",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Doubly>(in);
    },
    .may_be_causal = false};

}  // namespace rankscope
