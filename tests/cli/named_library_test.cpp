#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/temporary_folder.h"

namespace rankscope {
namespace {

// The first line that a command prints, RANKSCOPE_LIBRARY being "elsewhere.so".
std::string first_line(const std::string& program) {
  FILE* out = ::popen(("RANKSCOPE_LIBRARY=elsewhere.so '" + program + "'").c_str(), "r");
  std::string line(200, '\0');
  if (std::fgets(line.data(), static_cast<int>(line.size()), out) == nullptr) line.clear();
  ::pclose(out);
  return line.substr(0, line.find('\n'));
}

TEST(NamedLibrary, IsFollowedUnlessTheProgramHasMoreRightsThanItsCaller) {
  const char* probe = std::getenv("RANKSCOPE_RIGHTS_PROBE");
  if (probe == nullptr) GTEST_SKIP() << "RANKSCOPE_RIGHTS_PROBE is not set: run with ctest";
  EXPECT_EQ(first_line(probe), "elsewhere.so");

  // To root somebody else's program is one with other rights: that is all the loader looks at.
  const TemporaryFolder folder;
  struct statvfs mount {};
  ASSERT_EQ(::statvfs(folder.path().c_str(), &mount), 0);
  if (::geteuid() != 0 || (mount.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << "nothing can be made setuid here";
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0755});
  const std::filesystem::path copy = folder.path() / "probe";
  std::filesystem::copy_file(probe, copy);
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chown(copy.c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(::chmod(copy.c_str(), 04755), 0);
  EXPECT_EQ(first_line(copy.string()),
            "RANKSCOPE_LIBRARY is not followed with rights that the caller does not have");
}

}  // namespace
}  // namespace rankscope
