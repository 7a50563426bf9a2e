// Whether results may take the place of others.
#pragma once

#include <filesystem>

#include "cli/command.h"

namespace rankscope {

/// Refuses a folder that holds the results of another command: --force replaces them, and on a terminal
/// somebody is asked. The same command again replaces what it wrote, as does a command over a folder without
/// results.
void require_replaceable(const std::filesystem::path& folder, bool force, Io& io);

}  // namespace rankscope
