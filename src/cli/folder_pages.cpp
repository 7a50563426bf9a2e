#include "cli/folder_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "cli/saved.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostKept = 16;      // pages in memory
constexpr size_t kMostCompared = 16;  // results on one page
constexpr std::chrono::milliseconds kFresh{
    250};  // results that were looked at so lately are not looked at again

bool is_below(const fs::path& path, const fs::path& root) {
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return end == root.end();
}

}  // namespace

FolderPages::FolderPages(const fs::path& root) {
  std::error_code fault;
  root_ = fs::canonical(root, fault);
  if (!fault && fs::exists(root_, fault) && !fs::is_directory(root_, fault))
    throw Error("this is a file, not a folder").in(root.string()).hint("serve the folder that it is in");
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

// Empty when one of them is nothing of ours.
FolderPages::Paths FolderPages::resolve_all(const std::string& folders) const {
  Paths out;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find('\n', at), folders.size());
    out.push_back(resolve(folders.substr(at, end - at)));
    at = end + 1;
    const bool several = out.size() > 1 || at <= folders.size();
    if (out.size() > kMostCompared || out.back().empty() || (several && kind_of_folder(out.back()).empty()))
      return {};
  }
  return out;
}

// Size and time of every file that a page is made of. A link would show what lies outside, in the words of an
// error at least.
std::string FolderPages::tag_of(const fs::path& folder) {
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
  for (const char* name :
       {"metrics.csv", "samples.csv", "manifest.json", "arrays.safetensors", "study.json", "trials.csv",
        "published.csv", "study.db", "study.db-wal", "study.db-shm", "study.db-journal"})
    add(folder / name);
  std::error_code ignored;
  if (require(folder / "trials", fs::file_type::directory))
    for (const auto& trial : fs::directory_iterator(folder / "trials", ignored))
      if (!trial.is_regular_file(ignored) && require(trial.path(), fs::file_type::directory))
        add(trial.path() / "curve.jsonl");
  if (kind_of_folder(folder).empty())
    for (const PageContent::Folder& f : list_.below(folder))
      tag = tag * 31 + std::hash<std::string>()(f.path + f.kind + f.model + f.date);
  return fmt::format("{:x}", tag);
}

template <class Write>
std::string FolderPages::render(const Paths& folders, Write write) {
  PageContent content;
  content.live = true;
  SavedFolders saved;
  std::vector<Results> views;
  std::optional<ScanDiff> diff;
  if (kind_of_folder(folders.front()).empty()) {
    content.folders = list_.below(folders.front());
  } else {
    std::vector<std::string> names;
    for (const fs::path& folder : folders) names.push_back(folder.string());
    saved = read_folders(names);
    // Where two have one name they are told apart by their place below the root, and by nothing above it.
    const auto below = [&](std::string& name) {
      if (name.starts_with('/')) name = fs::path(name).lexically_relative(root_).string();
    };
    for (SavedResults& scan : saved.scans) below(scan.name);
    for (StudyResults& study : saved.studies) below(study.name);
    diff = pairs_of(saved);
  }
  for (const SavedResults& scan : saved.scans) views.push_back(scan.view());
  for (const Results& view : views) content.scans.push_back(&view);
  for (const StudyResults& study : saved.studies) content.studies.push_back(&study);
  if (diff) content.diff = &*diff;
  std::string out;
  write(content, [&](std::string_view piece) { out += piece; });
  return out;
}

FolderPages::Entry& FolderPages::current(const Paths& folders) {
  if (entries_.size() > kMostKept) entries_.clear();
  std::string key;
  for (const fs::path& folder : folders) key += folder.string() + "\n";
  Entry& entry = entries_[key];
  const auto now = std::chrono::steady_clock::now();
  if (entry.data && now - entry.looked < kFresh) return entry;
  std::string tag;
  for (const fs::path& folder : folders) tag += (tag.empty() ? "" : "+") + tag_of(folder);
  tag = fmt::format("\"{}\"", tag);
  if (entry.tag != tag) {
    const auto data = [](const PageContent& c, const TextSink& sink) { write_page_data(c, sink); };
    entry = {tag, std::make_shared<std::string>(render(folders, data)), nullptr, now};
  }
  entry.looked = now;
  return entry;
}

FolderPages::Answer FolderPages::page(const std::string& folder) {
  const Paths whole = resolve_all(folder);
  if (whole.empty()) return {};
  Entry& entry = current(whole);
  if (!entry.page) {
    auto text = std::make_shared<std::string>();
    write_page_around(*entry.data, true, [&](std::string_view piece) { *text += piece; });
    entry.page = text;
  }
  return {entry.page, entry.tag};
}

FolderPages::Answer FolderPages::data(const std::string& folder) {
  const Paths whole = resolve_all(folder);
  if (whole.empty()) return {};
  const Entry& entry = current(whole);
  return {entry.data, entry.tag};
}

}  // namespace rankscope
