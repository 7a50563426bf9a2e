// Whether a key without a value takes a part of every row of a block's patterns, learned or of a fixed score:
// rows then sum to less than one.
#pragma once

#include "attention/variant.h"
#include "lenses/lens.h"

namespace rankscope {

inline bool rows_fall_short(const LensContext& context) {
  if (context.layer < 0 || context.layer >= context.spec.depth()) return false;
  const BranchSpec* b = context.spec.blocks[static_cast<size_t>(context.layer)].attention_branch();
  return b != nullptr && !rows_sum_to_one(*b->attention());
}

}  // namespace rankscope
