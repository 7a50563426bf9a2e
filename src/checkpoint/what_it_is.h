// What somebody named in place of a checkpoint's folder, said in words: a name on a hub, a GGUF file, a
// folder of other things.
#pragma once

#include <filesystem>

#include "base/error.h"

namespace rankscope {

/// The error for a path that holds no config.json: what it is instead, and what to do.
Error not_a_checkpoint(const std::filesystem::path& path);

}  // namespace rankscope
