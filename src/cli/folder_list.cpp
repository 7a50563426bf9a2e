#include "cli/folder_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "cli/saved.h"
#include "sweep/store.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 3;  // levels of folders below the root that are listed
constexpr size_t kMostListed = 500;
constexpr uint64_t kLargestManifest = 16 << 20;  // bytes; one of a scan has some 20,000
constexpr size_t kLongestName = 200;

// Of a plain file: links and pipes are not looked at.
std::optional<struct stat> plain(const fs::path& file) {
  struct stat is {};
  if (::lstat(file.c_str(), &is) != 0 || !S_ISREG(is.st_mode)) return std::nullopt;
  return is;
}

std::string date_of(time_t seconds) {
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min);
}

std::string text_of(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  const auto& text = object[key].get_ref<const std::string&>();
  return text.size() <= 16 * kLongestName ? text : "";
}

// The last part of a path; "model" and "package" say nothing, and what is above them may.
std::string model_of(const std::string& path) {
  constexpr std::array<std::string_view, 8> kNothing{"model", "models", "package", "snapshot",
                                                     "hf",    "main",   "latest",  "weights"};
  std::string last;
  for (fs::path at = fs::path(path).lexically_normal(); !at.empty() && at != at.parent_path();
       at = at.parent_path()) {
    const std::string name = at.filename().string();
    if (name.empty() || name == "." || name == "..") continue;
    if (last.empty()) last = name;
    if (std::find(kNothing.begin(), kNothing.end(), name) == kNothing.end())
      return name.substr(0, kLongestName);
  }
  return last;
}

PageContent::Folder read_folder(const fs::path& folder, const std::string& kind) {
  PageContent::Folder out{.path = "", .kind = kind, .model = "", .date = ""};
  const fs::path about = folder / (kind == "scan" ? "manifest.json" : "study.json");
  const auto file = plain(about);
  if (!file && kind == "study") {  // not exported: its store knows
    try {
      out.model = Store::look_at(folder).study().title.substr(0, kLongestName);
    } catch (const Error&) {  // begun this moment, or not ours
    }
    return out;
  }
  if (!file || static_cast<uint64_t>(file->st_size) > kLargestManifest) return out;
  try {
    const Json said = read_json(about, kLargestManifest);
    if (kind == "scan") {
      out.kind = command_of(said);
      out.model = model_of(text_of(said, "model"));
      if (out.model.empty()) out.model = model_of(text_of(said, "init"));
    } else {
      out.model = text_of(said, "title").substr(0, kLongestName);
    }
  } catch (const Error&) {  // being written, or not ours: it is listed all the same
  }
  return out;
}

}  // namespace

std::vector<PageContent::Folder> FolderList::below(const fs::path& root) {
  std::vector<PageContent::Folder> out;
  std::map<std::string, Known> seen;
  std::error_code ignored;
  fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, ignored), end;
  for (; it != end && out.size() < kMostListed; it.increment(ignored)) {
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) continue;
    const fs::path& folder = it->path();
    const std::string kind = kind_of_folder(folder);
    if (!kind.empty() || it.depth() + 1 >= kDeepest) it.disable_recursion_pending();
    if (kind.empty()) continue;
    std::string state = kind;
    time_t newest = 0;
    for (const char* name : {"manifest.json", "metrics.csv", "study.json", "trials.csv", "study.db"})
      if (const auto file = plain(folder / name)) {
        newest = std::max(newest, file->st_mtime);
        state += fmt::format(" {}:{}", file->st_size, file->st_mtime);
      }
    const auto before = known_.find(folder.string());
    Known now = before != known_.end() && before->second.state == state
                    ? before->second
                    : Known{state, read_folder(folder, kind)};
    now.folder.path = fs::relative(folder, root).string();
    now.folder.date = newest == 0 ? "" : date_of(newest);
    out.push_back(now.folder);
    seen.emplace(folder.string(), std::move(now));
  }
  known_ = std::move(seen);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return out;
}

}  // namespace rankscope
