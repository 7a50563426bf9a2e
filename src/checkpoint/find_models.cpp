#include "checkpoint/find_models.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr int kLevels = 4;  // hub/models--x--y/snapshots/HASH
constexpr size_t kMostEntries = 10'000;

bool holds_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

// Of a folder snapshots/ the one that refs/main beside it names; empty where nobody says.
fs::path current_snapshot(const fs::path& snapshots) {
  std::error_code ignored;
  const fs::path main = snapshots / ".." / "refs" / "main";
  if (snapshots.filename() != "snapshots" || !fs::is_regular_file(main, ignored)) return {};
  std::string hash(64, '\0');  // 40 digits
  std::ifstream in(main, std::ios::binary);
  in.read(hash.data(), static_cast<std::streamsize>(hash.size()));
  hash.resize(static_cast<size_t>(in.gcount()));
  hash.erase(std::find_if_not(hash.begin(), hash.end(), [](unsigned char c) { return std::isalnum(c) != 0; }),
             hash.end());
  return !hash.empty() && holds_model(snapshots / hash) ? snapshots / hash : fs::path();
}

}  // namespace

std::vector<fs::path> models_below(const fs::path& folder) {
  std::vector<fs::path> found, level{folder};
  size_t seen = 0;
  for (int depth = 0; depth < kLevels && found.empty(); ++depth) {
    std::vector<fs::path> next;
    for (const fs::path& parent : level) {
      if (fs::path snapshot = current_snapshot(parent); !snapshot.empty()) {
        found.push_back(std::move(snapshot));
        continue;
      }
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(parent, ignored)) {
        if (++seen > kMostEntries) break;
        if (!entry.is_directory(ignored)) continue;
        (holds_model(entry.path()) ? found : next).push_back(entry.path());
      }
    }
    level = std::move(next);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace rankscope
