// Doubly normalised attention, round after round: with many rounds columns sum to queries / keys as rows sum
// to one.
#include "attention/support/sinkhorn.h"

namespace rankscope {
extern const AttentionVariant attention_sinkhorn{
    .name = "sinkhorn",
    .summary = "shares over queries and over keys in turn, rows last",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<DoublyNormalised>(in, static_cast<int64_t>(number_option(in.spec, "rounds")));
    },
    .may_be_causal = false,
    .options = {{.name = "rounds",
                 .otherwise = "5",
                 .low = 1,
                 .high = 100,
                 .meaning = "of both normalisations; 1 is doubly_normalised",
                 .whole = true}}};

}  // namespace rankscope
