#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "attention/variant.h"
#include "base/files.h"

namespace rankscope::test {
namespace {

TEST(AttentionPage, ListsEveryKindWithItsSummary) {
  const char* source = std::getenv("RANKSCOPE_SOURCE");
  ASSERT_NE(source, nullptr);
  const std::string page = read_file(std::filesystem::path(source) / "docs" / "ATTENTION.md");
  for (const AttentionVariant* v : attention_variants())
    EXPECT_NE(page.find(fmt::format("| `{}` | {} |", v->name, v->summary)), std::string::npos) << v->name;
}

}  // namespace
}  // namespace rankscope::test
