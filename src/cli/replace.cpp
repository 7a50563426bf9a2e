#include "cli/replace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <istream>
#include <ostream>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

// What made the results that are there: its command, or where the manifest does not tell, that something did.
std::string maker_of(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "metrics.csv", ignored)) return "";
  try {
    const Json manifest = read_json(folder / "manifest.json", 64 << 20);
    if (manifest.is_object() && manifest.contains("command") && manifest["command"].is_string())
      return manifest["command"].get<std::string>();
  } catch (const Error&) {
    // Results without a manifest are results.
  }
  return "an unknown command";
}

}  // namespace

void require_replaceable(const fs::path& folder, bool force, Io& io) {
  const std::string maker = maker_of(folder);
  if (force || maker.empty() || maker == fmt::format("rankscope {}", fmt::join(io.arguments, " "))) return;
  if (!io.quiet && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
    io.err << fmt::format("{} holds the results of\n  {}\nReplace them? [y/N] ", printable(folder.string()),
                          printable(maker, 400))
           << std::flush;
    std::string answer;
    if (std::getline(io.in, answer) && (answer == "y" || answer == "Y" || answer == "yes")) return;
  }
  throw usage_error(
      fmt::format("this folder holds the results of another command: {}", printable(maker, 200)))
      .in("--out " + folder.string())
      .hint("another --out, or --force to replace them");
}

}  // namespace rankscope
