#include "report/write.h"

#include <fmt/format.h>

#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "report/csv.h"
#include "report/json.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

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

}  // namespace

void write_results(const fs::path& folder, const Results& results) {
  make_folder(folder);
  FileWriter metrics(folder / "metrics.csv"), samples(folder / "samples.csv"),
      manifest(folder / "manifest.json");
  write_metrics_csv(results.table, into(metrics));
  write_samples_csv(results.table, into(samples));
  manifest.write(manifest_text(results.manifest));
  metrics.commit();
  samples.commit();
  manifest.commit();
}

}  // namespace rankscope
