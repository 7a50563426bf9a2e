#include "pass/file_hashes.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

std::string plain_hash(const std::filesystem::path& file) {
  Sha256 hash;
  hash.update(read_file(file));
  return hash.hex();
}

TEST(FileHashes, AreThoseOfTheFileAsItIsNow) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "weights";
  for (const size_t size : {size_t{0}, size_t{5}, size_t{1} << 20, (size_t{3} << 20) + 1}) {
    std::ofstream(file, std::ios::binary) << std::string(size, 'x');
    const BackgroundHashes hashes({file});
    EXPECT_EQ(hash_of_file(file), plain_hash(file)) << size;
  }
}

TEST(FileHashes, StoppedHalfWayAreMadeAgain) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "weights";
  std::ofstream(file, std::ios::binary) << std::string(size_t{64} << 20, 'y');
  { const BackgroundHashes hashes({file}); }  // ends before the file does
  EXPECT_EQ(hash_of_file(file), plain_hash(file));
}

TEST(FileHashes, OfAMissingFileIsAnError) { EXPECT_THROW(hash_of_file("/nowhere/at-all"), Error); }

}  // namespace
}  // namespace rankscope
