// Published numbers that travel inside the library (src/studies/published, written into code by CMake).
#pragma once

#include <string_view>

namespace rankscope {

/// Dong, Cordonnier and Loukas (2021), figure 2: model,weights,variant,depth,value,largest_std.
std::string_view published_collapse_csv();

}  // namespace rankscope
