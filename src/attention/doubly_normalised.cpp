// Doubly normalised attention (Ding et al. 2020): every key is shared out among the queries first, so that
// none is "explained away" by a key that all queries prefer. Its columns sum to at least 1 / keys, and a bias
// that all scores of a key share changes nothing.
#include "attention/support/sinkhorn.h"

namespace rankscope {
extern const AttentionVariant attention_doubly_normalised{
    .name = "doubly_normalised",
    .summary = "softmax over queries, then shares over keys: no key is explained away",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<DoublyNormalised>(in, 1);
    },
    .may_be_causal = false};

}  // namespace rankscope
