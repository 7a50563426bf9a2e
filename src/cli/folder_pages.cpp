#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "cli/saved.h"
#include "cli/server.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 3;  // levels of folders below the root that are listed
constexpr size_t kMostListed = 500;
constexpr size_t kMostKept = 16;  // pages in memory
constexpr std::chrono::milliseconds kFresh{
    250};  // results that were looked at so lately are not looked at again

bool is_below(const fs::path& path, const fs::path& root) {
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return end == root.end();
}

std::vector<PageContent::Folder> list(const fs::path& root) {
  std::vector<PageContent::Folder> out;
  std::error_code ignored;
  fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, ignored), end;
  for (; it != end && out.size() < kMostListed; it.increment(ignored)) {
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) continue;
    const std::string kind = kind_of_folder(it->path());
    if (!kind.empty()) out.push_back({fs::relative(it->path(), root).string(), kind});
    if (!kind.empty() || it.depth() + 1 >= kDeepest) it.disable_recursion_pending();
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return out;
}

}  // namespace

FolderPages::FolderPages(const fs::path& root) {
  std::error_code fault;
  root_ = fs::canonical(root, fault);
  if (fault || !fs::is_directory(root_, fault))
    throw Error("there is no such folder").in(root.string()).hint("check the path");
}

// Empty when there is nothing of ours.
fs::path FolderPages::resolve(const std::string& folder) const {
  if (folder.find('\0') != std::string::npos || folder.size() > 4096) return {};
  const fs::path relative(folder);
  if (relative.is_absolute()) return {};
  std::error_code fault;
  const fs::path whole = fs::canonical(root_ / relative, fault);
  if (fault || !is_below(whole, root_)) return {};
  return folder.empty() || !kind_of_folder(whole).empty() ? whole : fs::path();
}

// Size and time of every file that a page is made of. A link would show what lies outside, in the words of an
// error at least.
std::string FolderPages::tag_of(const fs::path& folder) const {
  size_t tag = 0;
  const auto require = [&](const fs::path& path, fs::file_type type) {
    std::error_code fault;
    const fs::file_type is = fs::symlink_status(path, fault).type();
    if (is != type && is != fs::file_type::not_found)
      throw Error("a link or a pipe stands among the results").in(path.lexically_relative(root_).string());
    return is == type;
  };
  const auto add = [&](const fs::path& file) {
    if (!require(file, fs::file_type::regular)) return;
    std::error_code fault;
    const auto size = fs::file_size(file, fault);
    if (fault) return;
    const auto time = fs::last_write_time(file, fault).time_since_epoch().count();
    tag = tag * 1'000'003 + fs::hash_value(file) + size * 31 + static_cast<size_t>(time);
  };
  for (const char* name : {"metrics.csv", "manifest.json", "arrays.safetensors", "study.json", "trials.csv",
                           "published.csv", "study.db", "study.db-wal", "study.db-shm"})
    add(folder / name);
  std::error_code ignored;
  if (require(folder / "trials", fs::file_type::directory))
    for (const auto& trial : fs::directory_iterator(folder / "trials", ignored))
      if (!trial.is_regular_file(ignored) && require(trial.path(), fs::file_type::directory))
        add(trial.path() / "curve.jsonl");
  if (kind_of_folder(folder).empty())
    for (const PageContent::Folder& f : list(folder))
      tag = tag * 31 + std::hash<std::string>()(f.path + f.kind);
  return fmt::format("\"{:x}\"", tag);
}

template <class Write>
std::string FolderPages::render(const fs::path& folder, Write write) const {
  PageContent content;
  content.live = true;
  SavedFolders saved;
  std::vector<Results> views;
  const std::string kind = kind_of_folder(folder);
  if (kind == "scan") saved.scans.push_back(read_scan_folder(folder));
  if (kind == "study") saved.studies.push_back(read_study_folder(folder));
  for (const SavedResults& scan : saved.scans) views.push_back(scan.view());
  for (const Results& view : views) content.scans.push_back(&view);
  for (const StudyResults& study : saved.studies) content.studies.push_back(&study);
  if (kind.empty()) content.folders = list(folder);
  std::string out;
  write(content, [&](std::string_view piece) { out += piece; });
  return out;
}

const FolderPages::Entry& FolderPages::current(const fs::path& folder) {
  if (entries_.size() > kMostKept) entries_.clear();
  Entry& entry = entries_[folder.string()];
  const auto now = std::chrono::steady_clock::now();
  if (entry.data && now - entry.looked < kFresh) return entry;
  const std::string tag = tag_of(folder);
  if (entry.tag != tag) {
    const auto data = [](const PageContent& c, const TextSink& sink) { write_page_data(c, sink); };
    entry = {tag, std::make_shared<std::string>(render(folder, data)), nullptr, now};
  }
  entry.looked = now;
  return entry;
}

FolderPages::Answer FolderPages::page(const std::string& folder) {
  const fs::path whole = resolve(folder);
  if (whole.empty()) return {};
  const Entry& entry = current(whole);
  if (!entry.page) {
    auto text = std::make_shared<std::string>();
    write_page_around(*entry.data, true, [&](std::string_view piece) { *text += piece; });
    entries_[whole.string()].page = text;
  }
  return {entry.page, entry.tag};
}

FolderPages::Answer FolderPages::data(const std::string& folder) {
  const fs::path whole = resolve(folder);
  if (whole.empty()) return {};
  const Entry& entry = current(whole);
  return {entry.data, entry.tag};
}

}  // namespace rankscope
