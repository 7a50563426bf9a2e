// Pages are written one sentence a line, so that a change of one shows as a change of one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

// What is wrong with a page: "12: two sentences", "14: goes on from the line before". Code, tables and
// headings are as they are.
std::vector<std::string> faults(const std::string& page) {
  static const std::regex item(R"(^\s*([-*]|\d+\.)\s+)"), code(R"(`[^`]*`)"), link(R"(\]\([^)]*\))"),
      abbreviation(R"(\.\.\.|\b(e\.g|i\.e|s\.e|al|vs|cf)\. )"), two(R"([.?!][)*_"\]]* +[A-Z*\[("])");
  std::vector<std::string> out;
  std::istringstream lines(page);
  std::string line, before;
  bool fenced = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    const bool fence = line.find("```") != std::string::npos;
    fenced = fenced != fence;
    const size_t first = line.find_first_not_of(' ');
    const bool blank = first == std::string::npos;
    const bool indented = before.empty() && !blank && first >= 4;
    if (fence || fenced || blank || indented ||
        std::string_view("|#!<").find(line[first]) != std::string::npos) {
      before.clear();
      continue;
    }
    const bool starts = before.empty() || std::regex_search(line, item);
    std::string text = std::regex_replace(line, item, "");
    text = std::regex_replace(std::regex_replace(text, code, "x"), link, "]");
    if (std::regex_search(std::regex_replace(text, abbreviation, "x "), two))
      out.push_back(fmt::format("{}: two sentences", number));
    if (!starts && !std::regex_search(before, std::regex(R"([.?!:;][)*_"\]]*$)")))
      out.push_back(fmt::format("{}: goes on from the line before", number));
    before = text;
  }
  return out;
}

TEST(Docs, HaveOneSentenceALine) {
  const std::filesystem::path tree = test::source_tree();
  std::vector<std::filesystem::path> pages{tree / "README.md", tree / "CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::directory_iterator(tree / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  EXPECT_GT(pages.size(), 15u);
  for (const auto& page : pages)
    for (const std::string& fault : faults(read_file(page))) ADD_FAILURE() << page.filename() << ":" << fault;
}

TEST(Docs, TheCheckSeesTwoSentencesAndBrokenOnes) {
  EXPECT_EQ(faults("One. Two.\n"), std::vector<std::string>{"1: two sentences"});
  EXPECT_EQ(faults("- A list. `x` goes on\n  here.\n"),
            std::vector<std::string>{"2: goes on from the line before"});
  EXPECT_EQ(faults("1. One.\n2. Two, e.g. This.\n\n```\nA. B.\n```\n| a. B | c |\n"),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace rankscope
