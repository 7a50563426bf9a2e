#include "paths/limits.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rankscope {

void require_within(int64_t value, WholeRange range, const char* option) {
  if (value < range.least || value > range.most)
    throw usage_error(
        fmt::format("{} should be from {} to {}, not {}", option, range.least, range.most, value));
}

}  // namespace rankscope
