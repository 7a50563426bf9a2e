// Doubly normalised attention that may be causal: a key is shared out among the queries up to the one that
// asks (attention/support/sinkhorn.h).
#include "attention/support/sinkhorn.h"

namespace rankscope {

extern const AttentionVariant attention_prefix_normalised{
    .name = "prefix_normalised",
    .summary = "doubly_normalised over earlier queries only: the form that may be causal",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = prepare_prefix_normalised};

}  // namespace rankscope
