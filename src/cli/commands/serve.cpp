// rankscope serve: a folder of results in the browser, updated while a study runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/folder_list.h"
#include "cli/options.h"
#include "cli/saved.h"
#include "cli/server.h"

namespace rankscope {
namespace {

struct ServeOptions {
  std::string folder;
  int port = 8765;
};

// A model is no result; a folder that waits for results is served.
void look_for_results(const std::string& folder, Io& io) {
  if (!kind_of_folder(folder).empty() || !FolderList().below(folder).empty()) return;
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(folder) / "config.json", ignored))
    throw Error("this is a model, and there are no results of it here")
        .in(folder)
        .hint("rankscope scan MODEL --out FOLDER writes some, and rankscope serve FOLDER shows them");
  if (!io.quiet) io.err << "there are no results here yet: the page shows them when they come\n";
}

int run_serve(const ServeOptions& o, Io& io) {
  FolderPages pages(o.folder);
  look_for_results(o.folder, io);
  serve_pages(pages, o.port, [&](int port) {
    io.out << fmt::format("http://127.0.0.1:{}/\n", port) << std::flush;
    if (!io.quiet) io.err << "for this machine only, until Ctrl-C\n";
  });
  return 0;
}

std::function<int(Io&)> prepare_serve(CLI::App& app) {
  auto o = std::make_shared<ServeOptions>();
  app.add_option("FOLDER", o->folder, "Results of a scan or a study, or a folder of such folders")
      ->required();
  app.add_option("--port", o->port, "On 127.0.0.1; 0 takes a free one")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  return [o](Io& io) { return run_serve(*o, io); };
}

}  // namespace

extern const Command command_serve{
    .name = "serve",
    .summary = "Show a folder of results in the browser and follow it while a study runs",
    .examples = {"rankscope serve out/", "rankscope serve out/fig1 --port 0"},
    .prepare = prepare_serve};

}  // namespace rankscope
