// A stream of random numbers for something that has a name, a parameter for one.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope {

/// FNV-1a, so that it does not depend on the standard library.
constexpr uint32_t stream_of(std::string_view name) {
  uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

}  // namespace rankscope
