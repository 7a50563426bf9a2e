#include <algorithm>

#include "pass/pass.h"

namespace rankscope {
namespace {

bool read_alike(const PassPlan& plan, const Variant& x, const Variant& y) {
  const auto number = [&](const Variant& v) { return static_cast<size_t>(&v - plan.variants.data()); };
  return std::all_of(plan.streams.begin(), plan.streams.end(),
                     [&](const StreamPlan& s) { return s.state_of(number(x)) == s.state_of(number(y)); });
}

bool same_prefix(const Variant& x, const Variant& y, size_t depth) {
  return x.source == y.source && x.input == y.input &&
         x.spec.embedding.use_positions == y.spec.embedding.use_positions && x.held_norms == y.held_norms &&
         std::equal(x.spec.blocks.begin(), x.spec.blocks.begin() + static_cast<std::ptrdiff_t>(depth),
                    y.spec.blocks.begin());
}

}  // namespace

int64_t count_steps(const PassPlan& plan) {
  const auto& variants = plan.variants;
  int64_t steps = 0;
  for (size_t depth = 1; depth <= variants.front().spec.blocks.size(); ++depth)
    for (auto v = variants.begin(); v != variants.end(); ++v)
      steps += std::none_of(variants.begin(), v, [&](const Variant& before) {
        return same_prefix(before, *v, depth) && read_alike(plan, before, *v);
      });
  return steps;
}

}  // namespace rankscope
