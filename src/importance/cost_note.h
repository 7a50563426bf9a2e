// What --ablate cost, counted: no finding, so it stands among the notes.
#pragma once

#include <string>

#include "base/table.h"

namespace rankscope {

/// "forward passes of 8 samples, counted: heads 115.0 (bound 116.0)" from the rows *_passes; empty without
/// any.
std::string cost_note(const ResultTable& table);

}  // namespace rankscope
