#include "base/sha256.h"

#include "base/files.h"
#include "base/test_support.h"

namespace rankscope {
namespace {

TEST(Sha256, GivesTheKnownAnswers) {  // FIPS 180-2, appendix B
  if (Sha256().hex().empty()) GTEST_SKIP() << "built without OpenSSL";
  Sha256 empty, abc;
  abc.update("a");
  abc.update("bc");
  EXPECT_EQ(empty.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(abc.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  if (Sha256().hex().empty()) GTEST_SKIP() << "built without OpenSSL";
  const test::TempFolder folder;
  test::put(folder / "a", std::string(1'000'000, 'a'));
  EXPECT_EQ(sha256_file(folder / "a"), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfAMissingFileIsAnError) { EXPECT_THROW(sha256_file("/nowhere/at-all"), Error); }

}  // namespace
}  // namespace rankscope
