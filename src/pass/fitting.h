// What fits into a GPU's memory: batches are halved until they do, and an error says what would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/batch.h"
#include "pass/pass.h"

namespace rankscope {

/// Bytes a pass over one sample of so many tokens takes at least: two blocks of weights, the states of the
/// variants, and what a block makes of one.
int64_t least_bytes(const PassPlan& plan, int64_t tokens);

/// Halves the plan's batches and says so in the notes; an Error where they are single samples already.
void halve_batches(PassPlan& plan, std::vector<std::string>& notes);

/// The largest of half, a quarter, ... of `tokens` that takes no more than `bytes`; 0 where none does.
int64_t length_that_fits(const PassPlan& plan, int64_t tokens, int64_t bytes);

}  // namespace rankscope
