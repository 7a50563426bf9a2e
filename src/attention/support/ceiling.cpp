#include "attention/ceiling.h"

#include <algorithm>

#include "attention/variant.h"
#include "spec/head_groups.h"

namespace rankscope {
namespace {

std::optional<int64_t> by_law(const AttentionSpec& spec, int64_t tokens) {
  const AttentionVariant& kind = attention_variant(spec.variant);
  if (kind.rank_ceiling == nullptr) return {};
  return kind.rank_ceiling(spec, tokens);
}

}  // namespace

std::optional<int64_t> rank_ceiling(const AttentionSpec& spec, int64_t head, int64_t tokens) {
  if (!has_head_groups(spec)) return by_law(spec, tokens);
  const HeadGroups groups = head_groups(spec);
  const HeadGroup& g = groups.of(head);
  // Blocks of a band can be of full rank, and a window over compressed keys has rank of its own.
  if (g.kind == "full" || g.kind == "local" || (g.kind == "compressed" && spec.window > 0)) return tokens;
  if (g.kind == "compressed") return std::min(tokens, groups.compressed_keys(tokens));
  return by_law(some_heads(spec, g.first, g.heads, g.kind), tokens).value_or(tokens);
}

}  // namespace rankscope
