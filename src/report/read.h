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

/// metrics.csv and manifest.json, and samples.csv where it is asked for. A folder of a newer schema is
/// refused.
SavedResults read_results(const std::filesystem::path& folder, Samples samples = Samples::leave);

/// The rows of a metrics.csv, wherever it lies.
std::vector<Row> read_metrics_csv(const std::filesystem::path& file);

/// A folder holds the results of a scan.
bool is_scan_folder(const std::filesystem::path& folder);

/// "tuned" of "out/tuned/": what people call a folder.
std::string folder_name(const std::filesystem::path& folder);

}  // namespace rankscope
