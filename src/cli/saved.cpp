#include "cli/saved.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/arrays.h"
#include "sweep/gathered.h"
#include "sweep/tables.h"

namespace rankscope {
namespace fs = std::filesystem;

SavedResults read_scan_folder(const fs::path& folder, Samples samples) {
  SavedResults saved = read_results(folder, samples);
  saved.arrays = read_arrays(folder / kArraysFile);
  return saved;
}

std::string kind_of_folder(const fs::path& folder) {
  if (has_store(folder) || is_study_folder(folder)) return "study";
  return is_scan_folder(folder) ? "scan" : "";
}

StudyResults read_study_folder(const fs::path& folder) {
  return has_store(folder) ? study_results(study_tables(Store::look_at(folder)), folder) : read_study(folder);
}

void require_folder(const std::string& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return;
  if (!fs::exists(folder, ignored)) throw Error("there is no such folder").in(folder).hint("check the path");
  const fs::path in = fs::path(folder).lexically_normal().parent_path();
  throw Error("this is a file, not a folder")
      .in(folder)
      .hint("give the folder that it is in: " + (in.empty() ? "." : in.string()));
}

std::string command_of(const Json& manifest) {
  const auto said = manifest.is_object() ? manifest.find("command") : manifest.end();
  if (said == manifest.end() || !said->is_string()) return "scan";
  const auto& command = said->get_ref<const std::string&>();
  for (const char* name : {"collapse", "paths", "operator", "plan"})
    if (command.starts_with(fmt::format("rankscope {} ", name)) ||
        command == fmt::format("rankscope {}", name))
      return name;
  return "scan";
}

SavedFolders read_folders(const std::vector<std::string>& folders) {
  SavedFolders out;
  const auto name_of = [&](const std::string& folder) {
    const auto same = [&](const std::string& other) { return folder_name(other) == folder_name(folder); };
    return std::count_if(folders.begin(), folders.end(), same) > 1 ? folder : folder_name(folder);
  };
  for (const std::string& folder : folders) {
    if (kind_of_folder(folder) == "study") {
      out.studies.push_back(read_study_folder(folder));
      out.studies.back().name = name_of(folder);
    } else {
      require_folder(folder);
      const bool two = folders.size() == 2 && fs::exists(fs::path(folder) / "samples.csv");
      out.scans.push_back(read_scan_folder(folder, two ? Samples::read : Samples::leave));
      out.scans.back().name = name_of(folder);
    }
  }
  return out;
}

std::optional<ScanDiff> pairs_of(const SavedFolders& folders) {
  const auto& scans = folders.scans;
  if (scans.size() != 2 || !folders.studies.empty() || !same_tokens(scans[0], scans[1])) return {};
  if (scans[0].table.samples.empty() || scans[1].table.samples.empty()) return {};
  return compare(scans[0], scans[1]);
}

void write_folders_page(const SavedFolders& folders, const ScanDiff* diff, const fs::path& out) {
  std::vector<Results> views;
  for (const SavedResults& scan : folders.scans) views.push_back(scan.view());
  PageContent content;
  for (const Results& view : views) content.scans.push_back(&view);
  for (const StudyResults& study : folders.studies) content.studies.push_back(&study);
  content.diff = diff;
  write_page(out, content);
}

}  // namespace rankscope
