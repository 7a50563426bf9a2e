// Queries, keys and values to what the heads carry: the one place that groups samples by length, prepares a
// variant's patterns and applies them.
#pragma once

#include <functional>
#include <string>

#include "attention/variant.h"
#include "model/block.h"

namespace rankscope {

/// What attention works on: queries of one batch, keys and values of the same or another one.
struct Attending {
  const AttentionSpec& spec;
  const Weights& weights;
  const std::string& name;  // of the branch
  const at::Tensor &q, &k;  // [N, H * d_qk], [N', KV * d_qk]
  const Batch& batch;
  const Batch& keys;
  at::Tensor gates = {};  // [N', H * g], where the pattern reads more of a key than itself
};

/// Samples of one length behind one another, with their patterns ready.
struct SampleGroup {
  int64_t first, count;                      // samples
  int64_t begin, length;                     // of the queries
  int64_t key_begin, key_length;             // of the keys
  std::unique_ptr<PreparedAttention> ready;  // patterns on demand
};

/// Calls `each` for groups of at most `most(length, keys)` samples that follow one another and are equally
/// long.
void for_each_group(const Attending& in, const std::function<int64_t(int64_t, int64_t)>& most,
                    const std::function<void(const SampleGroup&)>& each);

/// Patterns times values v [N', KV * d_v]: [N, H * d_v]. Heads that are off carry zero.
at::Tensor attend(const Attending& in, const at::Tensor& v, const BlockContext& context);

}  // namespace rankscope
