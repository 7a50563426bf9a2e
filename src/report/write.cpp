#include "report/write.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "report/csv.h"
#include "report/json.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

// The folders of the path that are not there yet, the innermost first; `there` is the one that is.
std::vector<fs::path> missing_folders(const fs::path& folder, fs::path& there) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (there = folder; !there.empty() && !fs::exists(there, ignored); there = there.parent_path())
    missing.push_back(there);
  if (there.empty()) there = ".";
  return missing;
}

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!code && fs::is_directory(folder)) return;
  throw Error(
      fmt::format("cannot make the folder: {}", code ? code.message() : "there is a file of that name"))
      .in(folder.string())
      .hint("choose another --out");
}

TextSink into(FileWriter& file) {
  return [&file](std::string_view text) { file.write(text); };
}

void write_files(const fs::path& folder, const Results& results) {
  FileWriter metrics(folder / "metrics.csv"), samples(folder / "samples.csv"),
      manifest(folder / "manifest.json");
  write_metrics_csv(results.table, into(metrics));
  write_samples_csv(results.table, into(samples));
  manifest.write(manifest_text(results.manifest));
  metrics.commit();
  samples.commit();
  manifest.commit();
}

}  // namespace

void write_results(const fs::path& folder, const Results& results) {
  fs::path there;
  const std::vector<fs::path> made = missing_folders(folder, there);
  try {
    make_folder(folder);
    write_files(folder, results);
  } catch (...) {
    std::error_code ignored;  // empty folders would look like a result
    for (const fs::path& empty : made) fs::remove(empty, ignored);
    throw;
  }
}

void require_writable(const fs::path& folder) {
  std::error_code ignored;
  fs::path there;
  missing_folders(folder, there);
  const bool is_folder = fs::is_directory(there, ignored);
  if (is_folder && ::access(there.c_str(), W_OK | X_OK) == 0) return;
  throw Error(is_folder ? fmt::format("cannot write there: {}", std::strerror(errno))
                        : fmt::format("cannot make the folder: \"{}\" is a file", printable(there.string())))
      .in(folder.string())
      .hint("choose another --out");
}

}  // namespace rankscope
