// Libraries that the environment names.
#pragma once

namespace rankscope {

/// What a variable of the environment says about where a library is; null where it says nothing. Whoever sets
/// it decides what code runs, so a program with more rights than its caller (setuid) refuses it.
const char* named_library(const char* variable);

}  // namespace rankscope
