#include "base/files.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/cut_short.h"
#include "base/test_support.h"

namespace rankscope {
namespace {

using test::error_of;
using test::files_in;
using test::get;
using test::put;
using test::TempFolder;

// Files may not grow past `bytes` while this lives: what a full disk feels like.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(ReadFile, GivesTheWholeFile) {
  const TempFolder folder;
  put(folder / "a", std::string("x\0y", 3));
  EXPECT_EQ(read_file(folder / "a"), std::string("x\0y", 3));
}

TEST(ReadFile, NamesTheMissingFile) {
  const Error error = error_of([] { read_file("/nowhere/at-all"); });
  EXPECT_EQ(error.message(), "cannot open the file: No such file or directory");
  EXPECT_EQ(error.place(), "/nowhere/at-all");
  EXPECT_EQ(error.advice(), "check the path");
}

TEST(ReadFile, RefusesFoldersAndDevices) {
  const TempFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }).message(), "this is not a regular file");
  EXPECT_EQ(error_of([] { read_file("/dev/zero"); }).message(), "this is not a regular file");
}

// Opening a pipe to read waits for somebody who writes: there is nobody.
TEST(ReadFile, DoesNotWaitForAPipe) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_file(folder / "pipe"); }).message(), "this is not a regular file");
  EXPECT_EQ(error_of([&] { MappedFile map(folder / "pipe"); }).message(), "this is not a regular file");
}

TEST(ReadFile, RefusesMoreThanTheLimit) {
  const TempFolder folder;
  put(folder / "a", "12345");
  EXPECT_EQ(error_of([&] { read_file(folder / "a", 4); }).message(),
            "the file has 5 bytes, more than the 4 allowed here");
}

TEST(WriteFile, ReplacesTheFileAndLeavesNothingElse) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  write_file(folder / "a", "new");
  EXPECT_EQ(get(folder / "a"), "new");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, AKilledProcessLeavesNothingHalfWritten) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    FileWriter file(folder / "a");
    file.write("new");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(get(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, DoesNotWriteThroughALinkUnderItsOwnNames) {
  const TempFolder folder;
  put(folder / "precious", "old");
  std::filesystem::create_symlink(folder / "precious", folder / "a");
  std::filesystem::create_symlink(folder / "precious",
                                  folder.path() / ("a.part" + std::to_string(::getpid())));
  write_file(folder / "a", "new");
  EXPECT_EQ(get(folder / "precious"), "old");
  EXPECT_EQ(get(folder / "a"), "new");
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(WriteFile, RemovesWhatAKilledProcessLeftBesideItAndNothingElse) {
  const TempFolder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  put(folder / "a", "old");
  put(folder.path() / ("a.part" + std::to_string(gone)), "whole, but killed before it got its name");
  for (const char* other : {"a.part", "a.parts", "a.part1x", "a.part-1", "b.part2147483000"})
    put(folder / other, "somebody's");
  put(folder.path() / ("a.part" + std::to_string(::getppid())), "of one that lives");
  write_file(folder / "a", "new");
  EXPECT_EQ(get(folder / "a"), "new");
  EXPECT_EQ(files_in(folder.path()), 7u);
}

TEST(WriteFile, ByManyAtOnceLeavesOneOfThemWholeAndNothingElse) {
  const TempFolder folder;
  constexpr int kWriters = 4, kTimes = 100;
  const std::string piece(5000, ' ');
  std::vector<pid_t> children;
  for (int i = 0; i < kWriters; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (int k = 0; k < kTimes; ++k) write_file(folder / "a", std::to_string(i) + piece);
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);  // and none threw
  }
  EXPECT_EQ(get(folder / "a").size(), 1 + piece.size());
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, OnAFullDiskKeepsTheOldFileAndLeavesNothingElse) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  const std::string large(1 << 16, 'x');
  const Error error = error_of([&] {
    const SmallDisk disk(4096);
    write_file(folder / "a", large);
  });
  EXPECT_EQ(error.message(), "cannot write the file: File too large");
  EXPECT_EQ(error.place(), (folder / "a").string());
  EXPECT_EQ(get(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, NamesAFolderThatIsNotThere) {
  EXPECT_EQ(error_of([] { write_file("/nowhere/at-all", "x"); }).message(),
            "cannot write the file: No such file or directory");
}

TEST(WriteFile, OntoAFolderLeavesNothingBehind) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "a/b");
  EXPECT_THROW(write_file(folder / "a", "x"), Error);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(FileWriter, PutsPiecesInPlaceOnlyOnCommit) {
  const TempFolder folder;
  {
    FileWriter file(folder / "a");
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    file.commit();
  }
  EXPECT_EQ(get(folder / "a"), "one two");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(FileWriter, WithoutCommitLeavesNothing) {
  const TempFolder folder;
  { FileWriter(folder / "a").write("half"); }
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(MappedFile, ReadsAgainAfterRelease) {
  const TempFolder folder;
  const std::string content(100'000, 'q');
  put(folder / "a", content);
  const MappedFile file(folder / "a");
  ASSERT_EQ(file.bytes().size(), content.size());
  file.release(5000, 60'000);
  file.release(0, SIZE_MAX / 2);  // past the end
  EXPECT_EQ(std::memcmp(file.bytes().data(), content.data(), content.size()), 0);
}

TEST(MappedFileDeathTest, OfOneThatIsCutShortTheProgramSaysWhich) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempFolder folder;
  put(folder / "weights", std::string(1 << 16, 'x'));
  EXPECT_EXIT(
      {
        name_files_that_are_cut_short();
        const MappedFile file(folder / "weights");
        std::filesystem::resize_file(folder / "weights", 0);
        const auto volatile last = file.bytes().back();
        static_cast<void>(last);
      },
      testing::ExitedWithCode(1), "the file got shorter while it was read\n  in   .*weights\n  try  again");
}

TEST(MappedFile, MapsAnEmptyFileToNothing) {
  const TempFolder folder;
  put(folder / "a", "");
  const MappedFile file(folder / "a");
  EXPECT_TRUE(file.bytes().empty());
  file.release(0, 10);
}

TEST(MappedFile, RefusesAFolder) {
  const TempFolder folder;
  EXPECT_THROW(MappedFile(folder.path()), Error);
}

}  // namespace
}  // namespace rankscope
