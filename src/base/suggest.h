// Nearest names for a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// Edit distance with adjacent transpositions (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

/// Up to `count` names from `known`, nearest first (those that begin with `name` before all); ties keep the
/// order of `known`.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& known, size_t count);

}  // namespace rankscope
