#include <algorithm>

#include "pass/pass.h"

namespace rankscope {
namespace {

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
      steps += std::none_of(variants.begin(), v,
                            [&](const Variant& before) { return same_prefix(before, *v, depth); });
  return steps;
}

}  // namespace rankscope
