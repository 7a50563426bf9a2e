#include "lenses/support/token_groups.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/philox.h"

namespace rankscope {
namespace {

/// The key of the i-th token that counts: the smallest keys make the groups.
std::vector<double> keys_of(uint64_t seed, int64_t sample, int64_t count) {
  constexpr uint32_t kStream = 0x746f6b73;  // "toks"
  const Philox random{seed, kStream, static_cast<uint32_t>(sample)};
  std::vector<double> keys;
  for (int64_t i = 0; i < count; ++i) keys.push_back(random.uniform(static_cast<uint64_t>(i)));
  return keys;
}

}  // namespace

std::array<TokenGroup, 2> token_groups(const Tokens& t, uint64_t seed, int64_t sample) {
  const std::vector<double> keys = keys_of(seed, sample, t.count);
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  std::array<TokenGroup, 2> groups;
  for (int64_t g = 0; g < 2; ++g) {
    const int64_t first = std::min(g * kTokenGroup, t.count), count = std::min(kTokenGroup, t.count - first);
    TokenGroup& group = groups[static_cast<size_t>(g)];
    group.x.resize(static_cast<size_t>(count * t.width));
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(t.x + order[static_cast<size_t>(first + i)] * t.width, t.width,
                  group.x.data() + i * t.width);
    group.tokens = {group.x.data(), count, t.width, t.epsilon};
  }
  return groups;
}

PaddedTokens token_groups(const PaddedTokens& one, uint64_t seed, int64_t sample) {
  const int64_t length = one.x.size(1), width = one.x.size(2), most = 2 * kTokenGroup;
  const at::Tensor keys = at::tensor(keys_of(seed, sample, length), one.x.options()), kept = one.kept[0];
  const at::Tensor place = (kept.cumsum(0) - 1).clamp_min(0).to(at::kLong);
  const at::Tensor key = at::where(kept > 0, keys.index_select(0, place), at::full({}, 2.0, keys.options()));
  const at::Tensor chosen = std::get<1>(key.sort(0)).narrow(0, 0, std::min(most, length));
  const at::Tensor x = one.x[0].index_select(0, chosen), counts = kept.index_select(0, chosen);
  const int64_t missing = most - chosen.size(0);
  const at::Tensor groups = at::constant_pad_nd(counts, {0, missing}).view({2, kTokenGroup});
  return {at::constant_pad_nd(x, {0, 0, 0, missing}).view({2, kTokenGroup, width}), groups, groups.sum(1),
          one.epsilon};
}

bool any_long(const Packing& packing) {
  for (int64_t s = 0; s < packing.count(); ++s)
    if (packing.length(s) > kLongestTokens) return true;
  return false;
}

PaddedTokens one_sample(const PaddedTokens& t, int64_t s, int64_t length) {
  return {t.x.narrow(0, s, 1).narrow(1, 0, length), t.kept.narrow(0, s, 1).narrow(1, 0, length),
          t.count.narrow(0, s, 1), t.epsilon};
}

}  // namespace rankscope
