// Results read back from the folder that write_results made. The files are not trusted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/results.h"

namespace rankscope {

struct SavedResults {
  std::string name;  // of the folder
  ResultTable table;
  std::vector<Sentence> verdict;
  std::vector<std::string> notes;
  Json manifest;
  std::vector<NamedArray> arrays;  // filled by those who read safetensors

  Results view() const;
};

enum class Samples { leave, read };

/// metrics.csv and manifest.json, and samples.csv where it is asked for.
SavedResults read_results(const std::filesystem::path& folder, Samples samples = Samples::leave);

/// Refuses a manifest.json or study.json of a newer schema than ours.
void require_known_schema(const JsonObject& about);

/// A folder holds the results of a scan.
bool is_scan_folder(const std::filesystem::path& folder);

/// "tuned" of "out/tuned/": what people call a folder.
std::string folder_name(const std::filesystem::path& folder);

}  // namespace rankscope
