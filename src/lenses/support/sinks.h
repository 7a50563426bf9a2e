// Whether a block's attention has learned sinks: the rows of its patterns then sum to less than one.
#pragma once

#include "lenses/lens.h"

namespace rankscope {

inline bool has_learned_sinks(const LensContext& context) {
  if (context.layer < 0 || context.layer >= context.spec.depth()) return false;
  const BranchSpec* b = context.spec.blocks[static_cast<size_t>(context.layer)].attention_branch();
  return b != nullptr && b->attention()->sinks;
}

}  // namespace rankscope
