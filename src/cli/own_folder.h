// Where the program lies: what belongs to it is found from there, installed or not.
#pragma once

#include <filesystem>

namespace rankscope {

/// The folder of the running program. Without /proc (a bare root) it is where the program was started from.
std::filesystem::path own_folder();

}  // namespace rankscope
