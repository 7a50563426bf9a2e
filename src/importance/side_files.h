// What goes with a model's weights into a folder that is written from it: config, tokenizer, the words of its
// authors. The folder may come from anybody, so only files with known names are copied, none that is huge,
// and none that a link fetches from elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rankscope {

/// Above this a file is no config and no tokenizer.
constexpr uint64_t kLargestSideFile = 64u << 20;

struct SideFile {
  std::string name;
  std::filesystem::path from;  // where it lies, behind all links
};

struct SideFiles {
  std::vector<SideFile> files;     // config.json is the last
  std::vector<std::string> notes;  // what is left out, and why
};

/// Looks at the folder of a model. A link counts as a file of the folder where it stays in it, or leads to
/// the blobs of the hub's cache that the folder is a snapshot of: models--x/snapshots/HASH/name to
/// models--x/blobs/y. Without a config.json to copy it is an error.
SideFiles side_files(const std::filesystem::path& model);

/// Whether a file of this name may be copied. Other names are left alone.
bool is_side_file(const std::string& name);

}  // namespace rankscope
