// Heads of one layer that attend in different ways (Multiformer, Sant et al. 2022), in groups, as one word:
// "mixed:full=2,local=4,window=24,compressed=2,kernel=5,stride=2". Groups stand in this order:
//
//   full        softmax over all keys
//   local       softmax over the keys of its own block of window / 3 tokens, the one before and the one
//               behind
//   compressed  softmax over fewer keys: a filter of `kernel` numbers slides over keys, and another over
//               values, `stride` tokens at a time
//   and any other file of attention/ that has no parameters of its own, alphabetically
//
// Without counts it is what the paper calls lc: half of the heads local, the others compressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model.h"

namespace rankscope {

constexpr std::string_view kMixed = "mixed";  // the variant
constexpr int64_t kMostGroupHeads = 4096, kWidestWindow = int64_t{1} << 20, kLongestFilter = 1024;

struct HeadGroup {
  std::string kind;  // "full", "local", "compressed", "fastmax", ...
  int64_t first = 0, heads = 0;
};

struct HeadGroups {
  std::vector<HeadGroup> groups = {};
  int64_t window = 64, kernel = 5, stride = 2;

  int64_t block() const { return window / 3; }
  /// What the filter slides over in front of the first token; behind the last come as many, and what it takes
  /// to fill the last place of the filter.
  int64_t padding() const { return stride / 2; }
  int64_t padded(int64_t tokens) const;
  int64_t compressed_keys(int64_t tokens) const;
  bool compresses() const;
  const HeadGroup& of(int64_t head) const;
};

/// The kinds a group can be of, in the order they stand in. Those with parameters of their own are refused by
/// the part, which knows them.
const std::vector<std::string>& head_group_kinds();

bool has_head_groups(const AttentionSpec& spec);
/// Refuses options it does not know, counts that are not the heads of the layer, and sinks or biases by
/// distance, whose parameters belong to all heads together.
HeadGroups head_groups(const AttentionSpec& spec);

/// Heads [first, first + heads) alone, attending by `variant`.
AttentionSpec some_heads(const AttentionSpec& spec, int64_t first, int64_t heads, std::string variant);
/// The variant of head h, where it is alone.
std::string variant_of_head(const AttentionSpec& spec, int64_t head);

/// Products of a query with a key or of a share with a value, over all heads, that `queries` and `keys` take;
/// times twice the width that is the cost of a layer's attention.
double products_of_heads(const AttentionSpec& spec, int64_t queries, int64_t keys);

}  // namespace rankscope
