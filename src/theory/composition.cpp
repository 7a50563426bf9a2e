#include "theory/composition.h"

#include <cmath>

#include "base/philox.h"
#include "base/stream_name.h"

namespace rankscope {

int64_t CompositionSize::entries(int64_t l) const {
  int64_t count = values;
  for (int64_t i = 1; i < l; ++i) count *= choices;
  return count;
}

int64_t CompositionSize::tokens() const {
  int64_t count = 2;
  for (int64_t l = 1; l <= functions; ++l) count += entries(l);
  return count;
}

int64_t Composition::entry(int64_t l, int64_t before) const {
  if (l == 1) return before;
  return told[static_cast<size_t>(l - 2)] * size.entries(l - 1) + before;
}

int64_t Composition::answer() const {
  int64_t at = start;
  for (int64_t l = 1; l <= size.functions; ++l)
    at = tables[static_cast<size_t>(l - 1)][static_cast<size_t>(entry(l, at))];
  return at;
}

Composition draw_composition(const CompositionSize& size, uint64_t seed, uint32_t number) {
  const Philox random{seed, stream_of("composition"), number};
  uint64_t next = 0;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(n), next++));
  };
  Composition out{size, {}, below(size.values), {}};
  for (int64_t l = 1; l <= size.functions; ++l) {
    std::vector<int64_t>& table = out.tables.emplace_back();
    for (int64_t e = 0; e < size.entries(l); ++e) table.push_back(below(size.entries(l)));
    if (l > 1) out.told.push_back(below(size.choices));
  }
  return out;
}

std::vector<CompositionToken> prompt_of(const Composition& c) {
  std::vector<CompositionToken> out;
  for (int64_t l = c.size.functions; l >= 1; --l)
    for (int64_t e = 0; e < c.size.entries(l); ++e)
      out.push_back({l, e, c.tables[static_cast<size_t>(l - 1)][static_cast<size_t>(e)]});
  out.push_back({0, 0, c.start});
  out.push_back({c.size.functions + 1, 0, 0});
  return out;
}

double log2_tokens_hybrids_fail(double log2_message, int64_t functions) {
  return log2_message * std::exp2(4 * static_cast<double>(functions) + 2);
}

double log2_tokens_full_layers_fail(double log2_message, int64_t functions) {
  return log2_message * std::exp2(4 * static_cast<double>(functions));
}

}  // namespace rankscope
