// Models below a folder, as people name folders: the one around a download, a hub's cache.
#pragma once

#include <filesystem>
#include <vector>

namespace rankscope {

/// The nearest folders below `folder` that hold a config.json, by name: all of one level, those of the levels
/// further down are not looked for. Of a model in a hub's cache (snapshots/X beside refs/main) the snapshot
/// that refs/main names. Looks four levels down, where a cache of several models keeps them, and through
/// 10,000 entries at most.
std::vector<std::filesystem::path> models_below(const std::filesystem::path& folder);

}  // namespace rankscope
