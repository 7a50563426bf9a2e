// Folders of saved results, whatever they hold: scans with their arrays, studies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/page.h"
#include "report/read.h"

namespace rankscope {

/// A scan's folder with everything a page shows of it.
SavedResults read_scan_folder(const std::filesystem::path& folder, Samples samples = Samples::leave);

/// A study's folder: its store where there is one, else the tables that were exported from it.
StudyResults read_study_folder(const std::filesystem::path& folder);

/// What a folder holds: "scan", "study", or nothing of ours.
std::string kind_of_folder(const std::filesystem::path& folder);

/// A file, or nothing at all, is an error that says so.
void require_folder(const std::string& folder);

/// Which command wrote a manifest: "rankscope paths --samples 2" is "paths"; "scan" where it says nothing
/// else.
std::string command_of(const Json& manifest);

/// The results of several folders, in the order given; folders of the same name are told apart by their
/// paths.
struct SavedFolders {
  std::vector<SavedResults> scans;
  std::vector<StudyResults> studies;
};
SavedFolders read_folders(const std::vector<std::string>& folders);

/// Two scans of the same tokens, pair by pair; nothing where the folders are something else.
std::optional<ScanDiff> pairs_of(const SavedFolders& folders);

/// A page of them.
void write_folders_page(const SavedFolders& folders, const ScanDiff* diff, const std::filesystem::path& out);

}  // namespace rankscope
