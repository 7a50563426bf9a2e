// Whether a description fits together.
#pragma once

#include <string>

#include "spec/model.h"

namespace rankscope {

/// Refuses a network that cannot be: heads that do not divide, a block whose weights are not stored, a part
/// or a stream nobody knows, widths that do not meet. `place` is named in errors.
void check(const ModelSpec& spec, const std::string& place);

}  // namespace rankscope
