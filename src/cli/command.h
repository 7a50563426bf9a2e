// A command is one file of cli/commands/: its name, its words for help, its options, and what it does.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace rankscope {

/// Where a command talks: results on `out`, everything else on `err`.
struct Io {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool quiet = false;
  std::vector<std::string> arguments = {};  // as they were given, the command first: for manifests
};

struct Command {
  std::string_view name;
  std::string_view summary;                // one line
  std::vector<std::string_view> examples;  // shown by --help
  /// Declares the options on `app` and returns what to run once they are parsed: 0, or 1 when a check failed.
  /// Failures are thrown as Error.
  std::function<int(Io&)> (*prepare)(CLI::App& app);
};

/// Every command, alphabetically (generated from the file names).
const std::vector<const Command*>& commands();

}  // namespace rankscope
