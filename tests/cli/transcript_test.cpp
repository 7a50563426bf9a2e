// The promises of the command line, kept as transcripts: each tests/cli/*.t is a page of commands and what
// they print. Prose stands at the margin. A line "  $ command" is run, "  > " goes on with it, and the
// indented lines after it are what both streams say together; "  ..." stands for any number of lines, "  [N]"
// at the end for an exit code other than 0. Blanks at the ends of lines and empty lines at the end of an
// output do not count. The commands of a page share one fresh folder and nothing else. A line "Needs cairo."
// at the margin skips the page where the program was built without that library, "Needs no cairo." where with
// it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "support/source_tree.h"
#include "support/temporary_folder.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

struct Step {
  int line = 0;  // of the page
  std::string command;
  Lines expected;  // output, then "[N]"
};

Lines lines_of(std::istream& in) {
  Lines out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<Step> read_page(const fs::path& page) {
  std::ifstream file(page);
  std::vector<Step> steps;
  int number = 0;
  size_t empty = 0;   // lines that belong to the output if more of it follows
  bool open = false;  // indented lines belong to a command
  for (const std::string& line : lines_of(file)) {
    ++number;
    if (line.rfind("  $ ", 0) == 0) {
      steps.push_back({number, line.substr(4), {}});
      open = true;
      empty = 0;
    } else if (line.rfind("  > ", 0) == 0 && open && steps.back().expected.empty()) {
      steps.back().command += "\n" + line.substr(4);
    } else if (line.find_first_not_of(' ') == std::string::npos) {
      ++empty;
    } else if (line.rfind("  ", 0) == 0) {
      if (!open)
        throw std::runtime_error(page.string() + ": no command before line " + std::to_string(number));
      steps.back().expected.insert(steps.back().expected.end(), std::exchange(empty, 0), "");
      steps.back().expected.push_back(line.substr(2));
    } else {
      open = false;
    }
  }
  return steps;
}

// What the program was built with, as CMake says: "cairo".
bool built_with(const std::string& library) {
  const char* all = std::getenv("RANKSCOPE_BUILT_WITH");
  return (":" + std::string(all == nullptr ? "" : all) + ":").find(":" + library + ":") != std::string::npos;
}

// What the page wants and the program is not; empty where it can be run.
std::string unmet(const fs::path& page) {
  std::ifstream file(page);
  for (const std::string& line : lines_of(file)) {
    if (line.rfind("Needs ", 0) != 0 || line.back() != '.') continue;
    const std::string need = line.substr(6, line.size() - 7);
    const bool without = need.rfind("no ", 0) == 0;
    if (built_with(without ? need.substr(3) : need) == without) return need;
  }
  return "";
}

std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(" \r") + 1); }

bool matches(Lines::const_iterator want, Lines::const_iterator want_end, Lines::const_iterator got,
             Lines::const_iterator got_end) {
  for (; want != want_end; ++want, ++got) {
    if (*want == "...") {
      for (auto from = got;; ++from) {
        if (matches(want + 1, want_end, from, got_end)) return true;
        if (from == got_end) return false;
      }
    }
    if (got == got_end || trimmed(*want) != trimmed(*got)) return false;
  }
  return got == got_end;
}

// Expected lines that came, came lines that were not expected: by the longest common subsequence.
std::string difference(const Lines& want, const Lines& got) {
  std::vector<std::vector<int>> common(want.size() + 1, std::vector<int>(got.size() + 1, 0));
  for (size_t i = want.size(); i-- > 0;)
    for (size_t k = got.size(); k-- > 0;)
      common[i][k] = trimmed(want[i]) == trimmed(got[k]) ? common[i + 1][k + 1] + 1
                                                         : std::max(common[i + 1][k], common[i][k + 1]);
  std::string out;
  for (size_t i = 0, k = 0; i < want.size() || k < got.size();) {
    if (i < want.size() && k < got.size() && trimmed(want[i]) == trimmed(got[k])) {
      out += "    " + want[i++] + "\n";
      ++k;
    } else if (k == got.size() || (i < want.size() && common[i + 1][k] >= common[i][k + 1])) {
      out += "  - " + want[i++] + "\n";
    } else {
      out += "  + " + got[k++] + "\n";
    }
  }
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Lines run(const std::string& command, const fs::path& folder, const fs::path& path) {
  std::ofstream(path / "command.sh") << "cd " << quoted(folder.string()) << "\n" << command << "\n";
  const std::string line = "env -u RANKSCOPE_MODELS NO_COLOR=1 LC_ALL=C.UTF-8 PATH=" + quoted(path.string()) +
                           ":\"$PATH\" TREE=" + quoted(source_tree().string()) + " /bin/sh " +
                           quoted((path / "command.sh").string()) + " </dev/null 2>&1";
  FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start a shell");
  std::stringstream output;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe))
    output.write(buffer, static_cast<std::streamsize>(got));
  const int status = ::pclose(pipe);
  Lines out = lines_of(output);
  while (!out.empty() && trimmed(out.back()).empty()) out.pop_back();
  if (WIFSIGNALED(status))
    out.push_back("[killed by signal " + std::to_string(WTERMSIG(status)) + "]");
  else if (WEXITSTATUS(status) != 0)
    out.push_back("[" + std::to_string(WEXITSTATUS(status)) + "]");
  return out;
}

class Transcript : public testing::TestWithParam<std::string> {};

TEST_P(Transcript, SaysWhatThePageSays) {
  const char* program = std::getenv("RANKSCOPE_PROGRAM");
  if (program == nullptr) GTEST_SKIP() << "RANKSCOPE_PROGRAM is not set: run with ctest";
  const fs::path page = fs::path(__FILE__).parent_path() / (GetParam() + ".t");
  if (const std::string need = unmet(page); !need.empty()) GTEST_SKIP() << "needs " << need;
  const TemporaryFolder path, folder;
  fs::create_symlink(fs::absolute(program), path.path() / "rankscope");
  const std::vector<Step> steps = read_page(page);
  ASSERT_FALSE(steps.empty());
  for (const Step& step : steps) {
    const Lines got = run(step.command, folder.path(), path.path());
    EXPECT_TRUE(matches(step.expected.begin(), step.expected.end(), got.begin(), got.end()))
        << GetParam() << ".t:" << step.line << ": $ " << step.command << "\n"
        << difference(step.expected, got) << "  (- expected, + printed)";
  }
}

std::vector<std::string> pages() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(__FILE__).parent_path()))
    if (entry.path().extension() == ".t") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cli, Transcript, testing::ValuesIn(pages()),
                         [](const auto& page) { return page.param; });

}  // namespace
}  // namespace rankscope::test
