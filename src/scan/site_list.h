// What of a model can be looked at, and who does: `rankscope lenses --sites`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rankscope {

struct SiteLine {
  std::string name, shape, form, meaning;
  std::vector<int64_t> blocks;      // those that have it; empty for a site outside the blocks
  std::vector<std::string> lenses;  // those that read it, with the block where they read it in one alone
};

/// Every site of the model in a folder, in the order of the pass. Reads its config and no weights.
std::vector<SiteLine> list_sites(const std::filesystem::path& model);

}  // namespace rankscope
