#include "cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/version.h"
#include "cli/command.h"

namespace rankscope {
namespace {

std::string footer(const Command& command) {
  std::string text = "Examples:\n";
  for (const std::string_view example : command.examples) text += fmt::format("  {}\n", example);
  return text;
}

// CLI11 says which argument is wrong; the nearest known option or command is ours to add.
Error usage_fault(const CLI::App& app, const CLI::ParseError& fault,
                  const std::vector<std::string>& arguments) {
  Error error = usage_error(fault.what());
  std::string command = app.get_name();
  for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
  std::vector<std::string> known;
  const auto learn = [&](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options())
      for (const std::string& name : option->get_lnames())  // a command and its parts have a --help each
        if (std::find(known.begin(), known.end(), "--" + name) == known.end()) known.push_back("--" + name);
  };
  learn(app);
  for (const CLI::App* sub : app.get_subcommands()) learn(*sub);
  std::vector<std::string> parts;  // of a command that has some: study run, study show
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    parts.push_back(sub->get_name());
  if (!parts.empty() && app.get_subcommands().empty()) {
    if (!arguments.empty() && !arguments.front().starts_with("-"))
      return unknown_name(app.get_name() + " command", arguments.front(), parts,
                          "rankscope " + app.get_name() + " --help");
    return usage_error(fmt::format("expected one of {}", fmt::join(parts, ", ")))
        .hint("rankscope " + app.get_name() + " --help");
  }
  for (const std::string& word : arguments) {
    if (word == "--") break;  // no option stands behind it
    if (word.rfind("--", 0) != 0) continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), name) == known.end())
      return usage_error(unknown_name("option", name, known).message())
          .hint(unknown_name("option", name, known, "--help").advice());
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&fault) != nullptr) {
    const std::string said = fault.what();  // "The following argument was not expected: x"
    std::string word = said.substr(said.find(": ") + 2);
    if (word.ends_with(" --")) word.erase(word.size() - 3);  // stands before them, in fact
    error = usage_error(fmt::format("there is no place for {}", printable(word)));
    std::error_code ignored;
    if (std::filesystem::is_regular_file(word, ignored) &&
        std::find(known.begin(), known.end(), "--text") != known.end())
      return std::move(error).hint("--text " + printable(word));
  }
  return std::move(error).hint("rankscope " + command + " --help");
}

// An empty word is most often a variable of the shell that is not set: to take it for nothing would answer
// another question than was asked. Titles and texts may be empty.
void refuse_empty(const std::vector<std::string>& arguments) {
  const auto may_be = [](std::string_view option) {
    return option == "--title" || option == "--text" || option.ends_with("-label");
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool value = word.starts_with("--") && word.ends_with("=");
    if (may_be(word.substr(0, word.find('=')))) {
      i += word.find('=') == word.npos ? 1 : 0;
      continue;
    }
    if (!word.empty() && !value) continue;
    throw usage_error(value   ? "its value is empty"
                      : i > 0 ? "an empty word stands behind it"
                              : "an argument is empty")
        .in(printable(value   ? word.substr(0, word.size() - 1)
                      : i > 0 ? arguments[i - 1]
                              : "the first"))
        .hint("a variable of the shell that is not set is such a word");
  }
}

// "FOLDER TEXT" would read like two arguments: what is named by its place needs no type.
void leave_out_types(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (option->get_positional() && option->get_lnames().empty()) option->type_name("");
  for (CLI::App* part : app.get_subcommands([](CLI::App*) { return true; })) leave_out_types(*part);
}

int run_command(const Command& command, std::vector<std::string> arguments, Io& io) {
  refuse_empty(arguments);
  CLI::App app{std::string(command.summary)};
  app.name("rankscope " + std::string(command.name));
  app.footer(footer(command));
  app.get_formatter()->column_width(36);
  const std::function<int(Io&)> run = command.prepare(app);
  app.add_flag("-q,--quiet", io.quiet, "Say nothing but results and errors");
  leave_out_types(app);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    io.out << app.help();
    return 0;
  } catch (const CLI::ParseError& fault) {
    app.name(std::string(command.name));
    throw usage_fault(app, fault, arguments);
  }
  return run(io);
}

void print_overview(std::ostream& out) {
  out << "rankscope " << version() << ": shows where attention gains and loses rank\n\n"
      << "Usage: rankscope COMMAND [options]\n\n";
  for (const Command* command : commands())
    out << fmt::format("  {:<10} {}\n", command->name, command->summary);
  out << "\nrankscope COMMAND --help explains one, with examples.\n";
}

int dispatch(std::vector<std::string> arguments, Io& io) {
  if (arguments.size() > 1 && arguments.front() == "help") {  // help scan: scan --help
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  io.arguments = arguments;
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h" ||
      arguments.front() == "help") {
    print_overview(io.out);
    return 0;
  }
  if (arguments.front() == "--version") {
    io.out << "rankscope " << version() << "\n";
    return 0;
  }
  if (arguments.front().starts_with("-"))
    throw unknown_name("option", arguments.front(), {"--help", "--version"}, "rankscope --help");
  std::vector<std::string> known;
  for (const Command* command : commands()) {
    if (command->name == arguments.front())
      return run_command(*command, {arguments.begin() + 1, arguments.end()}, io);
    known.emplace_back(command->name);
  }
  throw unknown_name("command", arguments.front(), known, "rankscope --help");
}

// Whoever read our output has read enough: `rankscope ... | head -1` is no failure.
bool reader_is_gone() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

int run_program(std::vector<std::string> arguments, std::istream& in, std::ostream& out, std::ostream& err) {
  Io io{in, out, err};
  try {
    const int code = dispatch(std::move(arguments), io);
    out.flush();
    // A full disk behind a redirection must not look like success.
    if (!out && !reader_is_gone())
      throw Error("cannot write the results").in("standard output").hint("check the disk behind it");
    return code;
  } catch (const Error& e) {
    err << e.render();
    return e.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::bad_alloc&) {
    err << Error("there is not enough memory")
               .hint("a smaller --batch-size, --samples or --max-length")
               .render();
  } catch (const std::exception& e) {
    const std::string said = e.what();  // torch puts a stack trace behind its first line
    err << Error(said.substr(0, said.find('\n'))).render();
  }
  return 1;
}

}  // namespace rankscope
