#include "lenses/support/token_groups.h"
#include "lenses/support/on_device.h"

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

PaddedTokens token_groups(const PaddedTokens& t, uint64_t seed, const std::vector<int64_t>& samples) {
  const auto count = static_cast<int64_t>(samples.size());
  const int64_t length = t.x.size(1), width = t.x.size(2), most = 2 * kTokenGroup;
  std::vector<double> drawn;
  for (const int64_t sample : samples) {
    const std::vector<double> keys = keys_of(seed, sample, length);
    drawn.insert(drawn.end(), keys.begin(), keys.end());
  }
  const at::Tensor keys = sent(at::tensor(drawn, at::kDouble).view({count, length}), t.x.device());
  const at::Tensor place = (t.kept.cumsum(1) - 1).clamp_min(0).to(at::kLong);
  const at::Tensor key = at::where(t.kept > 0, keys.gather(1, place), at::full({}, 2.0, keys.options()));
  const at::Tensor chosen = std::get<1>(key.sort(1)).narrow(1, 0, std::min(most, length));
  const at::Tensor x = t.x.gather(1, chosen.unsqueeze(2).expand({-1, -1, width}));
  const int64_t missing = most - chosen.size(1);
  const at::Tensor groups =
      at::constant_pad_nd(t.kept.gather(1, chosen), {0, missing}).view({2 * count, kTokenGroup});
  return {at::constant_pad_nd(x, {0, 0, 0, missing}).view({2 * count, kTokenGroup, width}), groups,
          groups.sum(1), t.epsilon};
}

ByLength measure_by_length(const PaddedTokens& t, const Packing& packing, uint64_t seed,
                           const MeasureOfSome& measure) {
  struct Kind {
    std::vector<int64_t> places = {}, samples = {};
    int64_t length = 0;
  } whole, groups;
  for (int64_t s = 0; s < packing.count(); ++s) {
    Kind& kind = packing.length(s) > kLongestTokens ? groups : whole;
    kind.places.push_back(s);
    kind.samples.push_back(packing.samples[static_cast<size_t>(s)]);
    kind.length = std::max(kind.length, packing.length(s));
  }
  // Those of one kind, without the padding that only the other needs.
  const auto index_of = [&](const Kind& kind) {
    return sent(at::tensor(kind.places, at::kLong), t.x.device());
  };
  const auto some = [&](const Kind& kind) -> PaddedTokens {
    if (static_cast<int64_t>(kind.places.size()) == packing.count()) return t;
    const at::Tensor index = index_of(kind);
    return {t.x.narrow(1, 0, kind.length).index_select(0, index),
            t.kept.narrow(1, 0, kind.length).index_select(0, index), t.count.index_select(0, index),
            t.epsilon};
  };
  const auto in_place = [&](const at::Tensor& numbers, const Kind& kind) {
    if (numbers.size(0) == packing.count()) return numbers;
    return at::full({packing.count(), numbers.size(1)}, kNone, numbers.options())
        .index_copy_(0, index_of(kind), numbers);
  };
  ByLength out;
  if (!whole.places.empty()) out.whole = in_place(measure(some(whole), whole.places), whole);
  if (!groups.places.empty()) {
    std::vector<int64_t> twice;
    for (const int64_t s : groups.places) twice.insert(twice.end(), 2, s);
    const PaddedTokens drawn = token_groups(some(groups), seed, groups.samples);
    const at::Tensor found = measure(drawn, twice);
    // An empty group says nothing, and so do both together.
    const at::Tensor both =
        at::where((drawn.count > 0).unsqueeze(1), found, at::full({}, kNone, found.options()));
    out.groups = in_place(both.view({-1, 2, both.size(1)}).mean(1), groups);
  }
  if (!out.whole.defined()) out.whole = at::full_like(out.groups, kNone);
  if (!out.groups.defined()) out.groups = at::full_like(out.whole, kNone);
  return out;
}

}  // namespace rankscope
