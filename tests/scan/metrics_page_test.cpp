// What docs/METRICS.md and src/report/names.json say of metrics is what the program measures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "pass/metrics.h"
#include "report/names.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

// A bar would end the cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

void expect_row(const std::string& page, const MetricInfo& m) {
  const std::string row = fmt::format("| `{}` | {} | {} |\n", m.name, cell(m.formula), cell(m.meaning));
  EXPECT_NE(page.find(row), std::string::npos) << "docs/METRICS.md has no line\n" << row;
}

TEST(MetricsPage, HasEveryMetricInTheProgramsWords) {
  const std::string page = read_file(test::source_tree() / "docs" / "METRICS.md");
  for (const Lens* lens : lenses()) {
    EXPECT_NE(page.find(fmt::format("### `{}`\n{}\n", lens->name, lens->summary)), std::string::npos)
        << lens->name << ": " << lens->summary;
    for (const MetricInfo& m : lens->metrics) expect_row(page, m);
  }
  for (const MetricInfo& m : metrics_without_lens()) expect_row(page, m);
}

TEST(MetricNames, EveryMetricOfALensHasOneThatPeopleRead) {
  for (const Lens* lens : lenses())
    for (const MetricInfo& m : lens->metrics)
      EXPECT_TRUE(is_name(m.name.substr(0, m.name.rfind("_rows")))) << m.name << ": src/report/names.json";
}

}  // namespace
}  // namespace rankscope
