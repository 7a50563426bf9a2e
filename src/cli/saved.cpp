#include "cli/saved.h"

#include <algorithm>

#include "base/error.h"
#include "cli/arrays.h"

namespace rankscope {
namespace fs = std::filesystem;

SavedResults read_scan_folder(const fs::path& folder, Samples samples) {
  SavedResults saved = read_results(folder, samples);
  saved.arrays = read_arrays(folder / kArraysFile);
  return saved;
}

SavedFolders read_folders(const std::vector<std::string>& folders) {
  SavedFolders out;
  const auto name_of = [&](const std::string& folder) {
    const auto same = [&](const std::string& other) { return folder_name(other) == folder_name(folder); };
    return std::count_if(folders.begin(), folders.end(), same) > 1 ? folder : folder_name(folder);
  };
  for (const std::string& folder : folders) {
    if (is_study_folder(folder)) {
      out.studies.push_back(read_study(folder));
      out.studies.back().name = name_of(folder);
    } else {
      if (!fs::is_directory(folder)) throw Error("there is no such folder").in(folder).hint("check the path");
      out.scans.push_back(read_scan_folder(folder));
      out.scans.back().name = name_of(folder);
    }
  }
  return out;
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
