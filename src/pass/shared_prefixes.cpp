#include "pass/shared_prefixes.h"

#include <algorithm>

namespace rankscope {
namespace {

// Norms that are held change nothing before the first of them.
bool norms_act(const std::vector<Step>& steps, size_t n) {
  return std::any_of(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n),
                     [](const Step& s) { return s.norm.acts(); });
}

}  // namespace

at::Tensor SharedPrefixes::run(const at::Tensor& x, const BlockContext& context, bool held, size_t batch) {
  const std::vector<Step>& steps = context.plan.steps;
  BlockState state = block_start(x);
  for (size_t n = 1; n <= steps.size(); ++n) {
    const Step& step = steps[n - 1];
    const bool last = n == steps.size();  // the end of a block is no prefix of another variant's
    if (const BlockState* known = last ? nullptr : find(steps, n, held, batch)) {
      state = *known;
      show_step(step, context, state);
      continue;
    }
    run_step(step, context, state, true);
    if (!last)
      known_.push_back({{steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n)}, held, batch, state});
  }
  return state.stream;
}

const BlockState* SharedPrefixes::find(const std::vector<Step>& steps, size_t n, bool held,
                                       size_t batch) const {
  for (const Entry& e : known_)
    if (e.batch == batch && e.prefix.size() == n && (e.held == held || !norms_act(steps, n)) &&
        std::equal(e.prefix.begin(), e.prefix.end(), steps.begin()))
      return &e.state;
  return nullptr;
}

}  // namespace rankscope
