// Whether results may take the place of others.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"

namespace rankscope {

/// Refuses a folder that holds a study, or the results of another command: --force replaces them, and on a
/// terminal somebody is asked. The same command again replaces what it wrote, as does a command over a folder
/// without results.
void require_replaceable(const std::filesystem::path& folder, bool force, Io& io);

/// The other way around: a study does not go where the results of a scan are, nor do its tables. `option`
/// gave the folder.
void require_no_scan(const std::filesystem::path& folder, const std::string& option);

}  // namespace rankscope
