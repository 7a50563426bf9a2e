// What the attention of a layer still needs once heads are out and maps are cut, kept as factors.
//
// A cut of QK touches queries and keys, one of OV values and outputs, one of KV keys and values, so what cuts
// save does not add up: the parameters of the layer are counted after all of them together.
#pragma once

#include <cstdint>

#include "spec/model.h"

namespace rankscope {

/// Whether something stands between queries and keys, so that each side is cut alone: rotary phases, norms.
bool is_turned(const AttentionSpec& a);

/// Query heads that write something, and KV heads that one of them reads.
int64_t heads_kept(const AttentionSpec& a);
int64_t kv_heads_read(const AttentionSpec& a);

struct FactoredSize {
  int64_t parameters = 0;  // of queries, keys, values and outputs, biases of the first three included
  int64_t cache = 0;       // numbers kept of every token
};

/// The smallest form that computes what is left: `a` says which heads are off and how far QK and OV are cut,
/// `kv_rank` > 0 how wide the latent of keys and values is. Every map may stay as it is stored, so that a cut
/// never adds; a product W_Q^T W_K or W_O W_V may be kept as two factors of its rank, keys and values as a
/// latent and what makes them of it.
FactoredSize factored_size(const AttentionSpec& a, int64_t kv_rank, int64_t width);

/// The same of everything that a layer's attention has head by head, gates and convolutions too; no cache
/// where it keeps a state.
FactoredSize factored_size(const BranchSpec& branch, int64_t kv_rank, int64_t width);

/// The ranks of the whole matrices [heads x d, width] that a folder of the plan stores.
struct StoredRanks {
  int64_t q = 0, k = 0, v = 0, o = 0;
  int64_t kv = 0;  // keys above values, which share a latent
};
StoredRanks stored_ranks(const AttentionSpec& a, int64_t kv_rank, int64_t width);

}  // namespace rankscope
