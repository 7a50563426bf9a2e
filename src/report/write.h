// Results as a folder: metrics.csv, samples.csv, manifest.json.
#pragma once

#include <filesystem>

#include "report/results.h"

namespace rankscope {

/// Makes the folder if need be. Everything is written beside its place first, so that a full disk leaves no
/// file that looks whole; the manifest comes last.
void write_results(const std::filesystem::path& folder, const Results& results);

/// Whether write_results could write there, asked before the work is done. Makes nothing.
void require_writable(const std::filesystem::path& folder);

}  // namespace rankscope
