#include "cli/named_library.h"

#include <fmt/format.h>
#include <sys/auxv.h>

#include <cstdlib>

#include "base/error.h"

namespace rankscope {

const char* named_library(const char* variable) {
  const char* set = std::getenv(variable);
  if (set != nullptr && ::getauxval(AT_SECURE) != 0)
    throw usage_error(fmt::format("{} is not followed with rights that the caller does not have", variable))
        .hint(fmt::format("unset {}", variable));
  return set;
}

}  // namespace rankscope
