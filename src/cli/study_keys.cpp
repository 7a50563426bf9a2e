#include "cli/study_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/engine.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr int kColumn = 24, kText = 54;  // as study list has them

// A word, and what is said of it beside it; below it where the word is long.
void print_entry(const std::string& word, const std::string& text, std::ostream& out) {
  const bool fits = std::ssize(word) < kColumn;
  if (!fits) out << word << "\n";
  std::string before = fits ? word : "";
  for (const std::string& line : wrap(text, kText)) {
    out << fmt::format("{:<{}}{}\n", before, kColumn, line);
    before.clear();
  }
}

std::string said_of(const Key& key) {
  const std::string also =
      key.also.empty() ? "" : fmt::format("; {} means {}", key.also, to_text(key.otherwise));
  return fmt::format("{} ({}{})", key.help, values_text(key), also);
}

void print_runner(const Runner& runner, std::ostream& out) {
  out << fmt::format("{}: {}\n\nkeys with their defaults, for [fixed], [grid], [protocol] and KEY=VALUES:\n",
                     runner.name, runner.summary);
  for (const Key& key : runner.keys)
    print_entry(fmt::format("{}={}", key.name, to_text(key.otherwise)), said_of(key), out);
  out << "\nresults, for y of [figure], metric of [published] and study show --metric:\n";
  for (const std::string& line : wrap(fmt::format("{}", fmt::join(runner.results, ", ")), kColumn + kText))
    out << line << "\n";
}

}  // namespace

int study_keys(const StudyOptions& options, Io& io) {
  if (!options.study.empty()) {
    print_runner(find_runner(engine().runners(), options.study, ""), io.out);
    return 0;
  }
  for (const Runner* runner : engine().runners())
    print_entry(
        std::string(runner->name),
        fmt::format("{}: {} keys, {} results", runner->summary, runner->keys.size(), runner->results.size()),
        io.out);
  return 0;
}

}  // namespace rankscope
