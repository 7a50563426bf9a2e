#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(Sha256, OfManyPiecesIsThatOfAllBytes) {  // appendix B.3
  if (Sha256().hex().empty()) GTEST_SKIP() << "built without OpenSSL";
  Sha256 million;
  for (int i = 0; i < 10; ++i) million.update(std::string(100'000, 'a'));
  EXPECT_EQ(million.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace rankscope
