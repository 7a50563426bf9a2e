// Where the tests' own files are.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace rankscope::test {

/// The source tree: ctest says where it is; by hand, it is above the current folder.
inline std::filesystem::path source_tree() {
  if (const char* set = std::getenv("RANKSCOPE_SOURCE")) return set;
  for (auto p = std::filesystem::current_path(); p != p.root_path(); p = p.parent_path())
    if (std::filesystem::exists(p / "tests" / "fixtures")) return p;
  throw std::runtime_error("run the tests with ctest, or from inside the source tree");
}

inline std::filesystem::path fixtures() { return source_tree() / "tests" / "fixtures"; }

}  // namespace rankscope::test
