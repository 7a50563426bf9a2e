#include "sweep/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/test_support.h"

namespace rankscope::test {
namespace {

TEST(TensorBoard, ChecksumsAreThoseOfTheStandard) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

TEST(TensorBoard, ARecordIsWhatTheFormatSays) {
  const std::string all = event_records("{\"step\":300,\"loss\":0.5}\n{\"step\":1,\"lo", 2.0);
  // The first record: length 24, wall time 2.0, file version.
  uint64_t length = 0;
  std::memcpy(&length, all.data(), 8);
  ASSERT_EQ(length, 24u);
  EXPECT_EQ(all.substr(12, 24), std::string("\x09\0\0\0\0\0\0\0\x40\x1A\x0D", 11) + "brain.Event:2");
  // The second: step 300, the scalar loss = 0.5. The cut-off line is no record.
  const std::string second = all.substr(12 + 24 + 4);
  const std::string event = std::string("\x09\0\0\0\0\0\0\0\x40\x10\xAC\x02\x2A\x0D\x0A\x0B\x0A\x04", 18) +
                            "loss" + std::string("\x15\0\0\0\x3F", 5);
  std::memcpy(&length, second.data(), 8);
  ASSERT_EQ(length, event.size());
  EXPECT_EQ(second.substr(12, event.size()), event);
  EXPECT_EQ(second.size(), 12 + event.size() + 4);
  uint32_t sum = 0;
  std::memcpy(&sum, second.data() + 12 + event.size(), 4);
  const uint32_t crc = crc32c(event);
  EXPECT_EQ(sum, ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

TEST(TensorBoard, ATrialWithoutACurveHasNoFile) {
  const TempFolder folder;
  EXPECT_FALSE(write_events(folder.path(), "0123", 1));
  std::filesystem::create_directories(folder / "trials/0123");
  put(folder / "trials/0123/curve.jsonl", "{\"step\":0,\"loss\":1.0}\n");
  EXPECT_TRUE(write_events(folder.path(), "0123", 1));
  EXPECT_EQ(files_in(folder / "tensorboard/0123"), 1u);
}

}  // namespace
}  // namespace rankscope::test
