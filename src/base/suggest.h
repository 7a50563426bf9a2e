// Nearest names for a mistyped one, and names in commands that are given to be copied.
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

/// A name from outside as a command may hold it: with anything in it that a shell or Python would carry out,
/// or take for its end, it is `otherwise`, which the reader fills in.
std::string to_copy(const std::string& name, std::string_view otherwise);

}  // namespace rankscope
