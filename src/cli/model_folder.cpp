#include "cli/model_folder.h"

#include <fmt/format.h>

#include <ostream>
#include <vector>

#include "base/error.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostEntries = 10'000;  // of a folder that is looked through

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ignored;
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (++seen > kMostEntries) break;
    if (entry.is_directory(ignored) && fs::exists(entry.path() / "config.json", ignored))
      out.push_back(entry.path());
  }
  return out;
}

}  // namespace

fs::path model_folder(const fs::path& given, Io& io) {
  std::error_code ignored;
  const bool adapter = fs::exists(given / "adapter_config.json", ignored);
  if (!fs::is_directory(given, ignored) || adapter || fs::exists(given / "config.json", ignored))
    return given;
  std::vector<fs::path> found = models_in(given);
  if (found.empty()) found = models_in(given / "snapshots");
  if (found.size() != 1) return given;
  if (!io.quiet)
    io.err << fmt::format("the model is one folder down: {}\n", printable(found.front().string()));
  return found.front();
}

}  // namespace rankscope
