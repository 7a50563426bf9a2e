// rankscope diff: what changed between two scans of the same tokens.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/saved.h"

namespace rankscope {
namespace {

struct DiffOptions {
  std::string a, b, out;
  int64_t top = 12;
};

// Rows of other variants and sites have no partners: there is nothing to compare, and no change to count.
void require_common_rows(const SavedFolders& folders, const ScanDiff& diff) {
  const SavedResults &a = folders.scans[0], &b = folders.scans[1];
  if (diff.only_a < a.table.rows.size() || a.table.rows.empty()) return;
  const std::string of_a = command_of(a.manifest), of_b = command_of(b.manifest);
  throw Error("the two have no row in common: there is nothing to compare")
      .in(fmt::format("{} ({}) and {} ({})", a.name, of_a, b.name, of_b))
      .hint(of_a == of_b ? "two runs with the same lenses and variants"
                         : "two folders of one command; rankscope report shows these side by side");
}

int run_diff(const DiffOptions& o, Io& io) {
  SavedFolders folders;
  for (const std::string& folder : {o.a, o.b}) {
    require_folder(folder);
    folders.scans.push_back(read_scan_folder(folder, Samples::read));
  }
  if (folders.scans[0].name == folders.scans[1].name) {
    folders.scans[0].name = o.a;
    folders.scans[1].name = o.b;
  }
  const ScanDiff diff = compare(folders.scans[0], folders.scans[1]);
  require_common_rows(folders, diff);
  if (!o.out.empty()) write_folders_page(folders, &diff, o.out);
  print_diff(diff, static_cast<size_t>(o.top), terminal_style(STDOUT_FILENO), io.out);
  if (!o.out.empty() && !io.quiet) io.err << fmt::format("wrote {}\n", printable(o.out, 400));
  return 0;
}

std::function<int(Io&)> prepare_diff(CLI::App& app) {
  auto o = std::make_shared<DiffOptions>();
  app.add_option("A", o->a, "Folder of the first scan")->required();
  app.add_option("B", o->b, "Folder of the second scan, of the same tokens")->required();
  app.add_option("--out", o->out, "Write the comparison as a page, too")
      ->check(some_name())
      ->type_name("FILE");
  app.add_option("--top", o->top, "Rows to print of each kind")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  return [o](Io& io) { return run_diff(*o, io); };
}

}  // namespace

extern const Command command_diff{
    .name = "diff",
    .summary = "Compare two scans of the same tokens: the layers and heads that changed",
    .examples = {"rankscope diff out/base out/tuned", "rankscope diff out/base out/tuned --out diff.html"},
    .prepare = prepare_diff};

}  // namespace rankscope
