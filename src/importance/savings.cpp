#include "importance/savings.h"

namespace rankscope {
namespace {

// KV heads of a layer that no head reads any more.
int64_t unread(const AttentionSpec& a, int64_t layer, const HeadSet& out) {
  int64_t count = 0;
  const int64_t group = a.heads / a.kv_heads;
  for (int64_t g = 0; g < a.kv_heads; ++g) {
    int64_t gone = 0;
    for (int64_t h = g * group; h < (g + 1) * group; ++h) gone += out.count({layer, h}) > 0;
    count += gone == group;
  }
  return count;
}

const AttentionSpec* attention_of(const BlockSpec& block) {
  const BranchSpec* b = block.attention_branch();
  return b != nullptr ? b->attention() : nullptr;
}

}  // namespace

int64_t parameters_saved(const ModelSpec& spec, const HeadSet& out) {
  int64_t total = 0;
  for (const auto& [layer, head] : out) {
    const AttentionSpec* a = attention_of(spec.blocks[static_cast<size_t>(layer)]);
    if (a != nullptr) total += spec.width * (a->d_qk + a->d_v) + (a->bias ? a->d_qk : 0);
  }
  for (int64_t l = 0; l < spec.depth(); ++l)
    if (const AttentionSpec* a = attention_of(spec.blocks[static_cast<size_t>(l)]))
      total += unread(*a, l, out) *
               (spec.width * (a->d_qk + a->d_v) + (a->bias ? a->d_v + (a->key_bias ? a->d_qk : 0) : 0));
  return total;
}

double cache_saved(const ModelSpec& spec, const HeadSet& out) {
  double saved = 0, all = 0;
  for (int64_t l = 0; l < spec.depth(); ++l)
    if (const AttentionSpec* a = attention_of(spec.blocks[static_cast<size_t>(l)])) {
      const auto each = static_cast<double>(a->d_qk + a->d_v);
      saved += each * static_cast<double>(unread(*a, l, out));
      all += each * static_cast<double>(a->kv_heads);
    }
  return all > 0 ? saved / all : 0;
}

}  // namespace rankscope
