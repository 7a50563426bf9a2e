#include "cli/replace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <istream>
#include <ostream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "sweep/gathered.h"
#include "sweep/store.h"

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

// --force says nothing of what was measured.
std::string unforced(std::string command) {
  constexpr std::string_view kForce = " --force";
  for (size_t at = command.find(kForce); at != command.npos; at = command.find(kForce, at)) {
    const size_t end = at + kForce.size();
    if (end == command.size() || command[end] == ' ')
      command.erase(at, kForce.size());
    else
      at = end;
  }
  return command;
}

// The study that runs, ran or was exported there; nothing where there is none.
std::string study_in(const fs::path& folder) {
  std::error_code ignored;
  const bool tables =
      fs::exists(folder / "study.json", ignored) &&
      (fs::exists(folder / "trials.csv", ignored) || fs::exists(folder / "trials.jsonl", ignored));
  if (!has_store(folder) && !tables) return "";
  try {
    if (has_store(folder)) return "the study " + Store::look_at(folder).study().name;
    const std::string about = (folder / "study.json").string();
    return "the study " + JsonObject(read_json(about, 64 << 20), about).string("name");
  } catch (const Error&) {
    return "a study";  // that cannot be read is one all the same
  }
}

bool somebody_agrees(const fs::path& folder, const std::string& held, const char* question, Io& io) {
  if (io.quiet || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return false;
  io.err << fmt::format("{} holds {}\n{} [y/N] ", printable(folder.string()), printable(held, 400), question)
         << std::flush;
  std::string answer;
  return std::getline(io.in, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

Error held_by(const std::string& what, const std::string& option, const fs::path& folder,
              const std::string& advice) {
  return usage_error(fmt::format("this folder holds {}", printable(what, 240)))
      .in(option + " " + folder.string())
      .hint(advice);
}

}  // namespace

void require_replaceable(const fs::path& folder, bool force, Io& io) {
  if (force) return;
  if (const std::string study = study_in(folder); !study.empty()) {  // its report.html would go
    if (somebody_agrees(folder, study, "Write beside it and replace its report.html?", io)) return;
    throw held_by(study, "--out", folder,
                  "another --out, or --force to write beside it and replace report.html");
  }
  const std::string maker = maker_of(folder);
  if (maker.empty() || unforced(maker) == unforced(fmt::format("rankscope {}", fmt::join(io.arguments, " "))))
    return;
  if (somebody_agrees(folder, "the results of " + maker, "Replace them?", io)) return;
  throw held_by("the results of another command: " + maker, "--out", folder,
                "another --out, or --force to replace them");
}

void require_no_scan(const fs::path& folder, const std::string& option) {
  const std::string maker = maker_of(folder);
  if (!maker.empty() && study_in(folder).empty())
    throw held_by("the results of another command: " + maker, option, folder, "another " + option);
}

}  // namespace rankscope
