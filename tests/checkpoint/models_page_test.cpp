// docs/MODELS.md lists what is read, in the words of the register.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "checkpoint/architecture.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

TEST(ModelsPage, HasALineForEveryArchitecture) {
  const std::string page = read_file(test::source_tree() / "docs" / "MODELS.md");
  for (const Architecture* a : architectures()) {
    const std::string line = fmt::format("| `{}` | {} | ", a->name, a->summary);
    EXPECT_NE(page.find(line), std::string::npos) << "docs/MODELS.md has no line that begins\n" << line;
  }
}

}  // namespace
}  // namespace rankscope
