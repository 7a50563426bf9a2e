#include "report/write.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "report/csv.h"
#include "report/json.h"
#include "report/page.h"

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

void write_files(const fs::path& folder, const Results& results, const std::function<void()>& also) {
  FileWriter metrics(folder / "metrics.csv"), samples(folder / "samples.csv"), page(folder / "report.html"),
      manifest(folder / "manifest.json");
  write_metrics_csv(results.table, into(metrics));
  write_samples_csv(results.table, into(samples));
  PageContent content;
  content.scans = {&results};
  write_page(content, into(page));
  Json described = results.manifest;  // with the verdict, so that the folder can be shown again
  described["verdict"] = Json::parse(verdict_text(results.verdict));
  manifest.write(manifest_text(described));
  if (also) also();
  for (FileWriter* file : {&metrics, &samples, &page, &manifest}) file->commit();
}

}  // namespace

ResultFolder::ResultFolder(const fs::path& folder) {
  fs::path there;
  made_ = missing_folders(folder, there);
  make_folder(folder);
}

ResultFolder::~ResultFolder() {
  std::error_code ignored;  // one that holds something stays
  for (const fs::path& folder : made_) fs::remove(folder, ignored);
}

void write_results(const fs::path& folder, const Results& results, const std::function<void()>& also) {
  const ResultFolder made(folder);
  write_files(folder, results, also);
}

namespace {

bool begins_with(const fs::path& file, std::string_view start) {
  std::ifstream in(file, std::ios::binary);
  std::string got(start.size(), '\0');
  return in.read(got.data(), static_cast<std::streamsize>(got.size())) && got == start;
}

Error not_ours(const std::string& what, const fs::path& folder) {
  return usage_error(what).in("--out " + folder.string()).hint("choose another --out");
}

// A folder with our files in it is written over: that is what running again means. Nobody else's is.
void require_ours(const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(folder, ignored);
  if (!whole.empty() && whole == whole.root_path()) throw not_ours("this is the root folder", folder);
  for (const char* name :
       {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"})
    if (fs::exists(folder / name, ignored))
      throw not_ours(fmt::format("this is the folder of a model: it has a {}", name), folder);
  for (const char* name : {"metrics.csv", "samples.csv"})
    if (fs::exists(folder / name, ignored) &&
        (!fs::is_regular_file(folder / name, ignored) ||
         !begins_with(folder / name, "variant,site,layer,head,metric,")))
      throw not_ours(fmt::format("the {} in this folder is not one of rankscope's", name), folder);
  std::vector<std::string_view> names{"manifest.json", "report.html"};
  names.insert(names.end(), kBesideTables.begin(), kBesideTables.end());
  if (!fs::exists(folder / "metrics.csv", ignored))  // which is written first
    for (const std::string_view name : names)
      if (fs::exists(folder / name, ignored) && !fs::exists(folder / "study.db", ignored) &&
          !fs::exists(folder / "trials.csv", ignored))
        throw not_ours(fmt::format("there is a {} in this folder, and no results of a scan", name), folder);
}

}  // namespace

void require_writable(const fs::path& folder) {
  require_ours(folder);
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
