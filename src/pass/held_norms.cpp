#include "pass/held_norms.h"

#include "tensors/norm.h"

namespace rankscope {

Weights with_held_norms(const at::Tensor& x, const BlockPlan& plan, const Weights& weights,
                        const Batch& batch) {
  Weights out = weights.shallow_copy();
  BlockObserver nobody;
  const BlockContext context{plan, weights, batch, nobody};
  BlockState state = block_start(x);
  for (const Step& step : plan.steps) {
    Step open = step;  // the same without its norm: what that norm is given
    open.norm = {};
    BlockState given = state;
    if (step.norm.acts()) {
      run_step(open, context, given, true);
      const bool joins = step.kind == Step::Kind::join;
      out.set(step.norm_name + ".held", norm_scale(joins ? given.stream : given.value, step.norm));
    }
    run_step(step, context, state, true);
  }
  return out;
}

}  // namespace rankscope
