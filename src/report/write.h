// Results as a folder: metrics.csv, samples.csv, report.html, manifest.json.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "report/results.h"

namespace rankscope {

/// What commands may write beside the tables.
inline constexpr std::array<std::string_view, 6> kBesideTables{
    "arrays.safetensors",           "token_maps.safetensors",       "patterns.safetensors",
    "patterns-encoder.safetensors", "patterns-decoder.safetensors", "patterns-cross.safetensors"};

/// A folder made for results, parents included. What was made here and is still empty when the scope ends
/// goes again: an empty folder would look like a result.
class ResultFolder {
 public:
  explicit ResultFolder(const std::filesystem::path& folder);
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

 private:
  std::vector<std::filesystem::path> made_;
};

/// Makes the folder if need be. Everything is written beside its place first, so that a full disk leaves no
/// file that looks whole; the manifest comes last, after what `also` writes.
void write_results(const std::filesystem::path& folder, const Results& results,
                   const std::function<void()>& also = {});

/// Whether write_results could write there, asked before the work is done. Makes nothing. The root folder, a
/// model's, and one that holds tables under our names which are not ours are refused.
void require_writable(const std::filesystem::path& folder);

}  // namespace rankscope
