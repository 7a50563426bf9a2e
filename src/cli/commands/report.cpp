// rankscope report: saved results as one page again; several folders side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/saved.h"

namespace rankscope {
namespace {

struct ReportOptions {
  std::vector<std::string> folders;
  std::string out;
};

int run_report(const ReportOptions& o, Io& io) {
  std::filesystem::path out = o.out;
  if (o.out.empty())
    out = o.folders.size() == 1 ? std::filesystem::path(o.folders.front()) / "report.html" : "report.html";
  if (const auto ending = out.extension(); !ending.empty() && ending != ".html" && ending != ".htm")
    throw usage_error("the report is an HTML page").in(out.string()).hint("a name that ends in .html");
  const SavedFolders folders = read_folders(o.folders);
  const std::optional<ScanDiff> pairs = pairs_of(folders);
  write_folders_page(folders, pairs ? &*pairs : nullptr, out);
  if (!io.quiet) io.err << fmt::format("wrote {}\n", printable(out.string(), 400));
  return 0;
}

std::function<int(Io&)> prepare_report(CLI::App& app) {
  auto o = std::make_shared<ReportOptions>();
  app.add_option("FOLDER", o->folders, "Folders that scan --out or study wrote; several are compared")
      ->required();
  app.add_option("--out", o->out, "The page; report.html in the folder, or here for several folders")
      ->check(some_name())
      ->type_name("FILE");
  return [o](Io& io) { return run_report(*o, io); };
}

}  // namespace

extern const Command command_report{
    .name = "report",
    .summary = "Show saved results as one HTML page, several folders side by side",
    .examples = {"rankscope report out/bert",
                 "rankscope report out/step-1000 out/step-2000 out/step-4000 --out series.html"},
    .prepare = prepare_report};

}  // namespace rankscope
