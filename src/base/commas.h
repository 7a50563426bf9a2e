// Values with commas between them.
#pragma once

#include "base/error.h"

namespace rankscope {

/// Where a value is missing one may have been lost: nothing is guessed. `first` and `last` say where it
/// stands.
inline Error missing_value(bool first, bool last) {
  const char* where = first && last ? "in it"
                      : first       ? "before the first comma"
                      : last        ? "behind the last comma"
                                    : "between two commas";
  return usage_error(std::string("there is nothing ") + where);
}

}  // namespace rankscope
