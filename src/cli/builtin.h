// Where the built-in model is: beside the program's tree, or installed.
#pragma once

#include <filesystem>

namespace rankscope {

/// The folder models/builtin, found from the program's place; RANKSCOPE_MODELS overrides its parent.
std::filesystem::path builtin_model();

}  // namespace rankscope
