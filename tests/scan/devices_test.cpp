// A scan gives the same numbers wherever its tensors are: every metric of every fixture in double precision.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "lenses/support/on_device.h"
#include "scan/fixture_request.h"

namespace rankscope::test {
namespace {

// Sums of at most a few thousand numbers near one in another order are off by 1e-13 of the largest; norms and
// quotients of small differences lose three digits more.
constexpr double kRounding = 1e-10;

std::vector<std::string> networks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures() / "models")) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    if (name == "clip")  // two networks in one folder
      names.insert(names.end(), {name + "/text_model", name + "/vision_model"});
    else
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_rows(const ResultTable& there, const ResultTable& here) {
  ASSERT_EQ(there.rows.size(), here.rows.size());
  for (size_t i = 0; i < here.rows.size(); ++i) {
    const Row &a = there.rows[i], &b = here.rows[i];
    const std::string what =
        fmt::format("{} {} {} head {}", a.variant.str(), a.site.str(), a.metric.str(), a.head);
    ASSERT_EQ(a.metric, b.metric);
    ASSERT_EQ(a.site, b.site);
    ASSERT_EQ(a.head, b.head);
    if (!std::isfinite(b.value)) {
      EXPECT_EQ(std::isfinite(a.value), false) << what;
      continue;
    }
    EXPECT_NEAR(a.value, b.value, kRounding * std::max(1.0, std::abs(b.value))) << what;
  }
}

class Devices : public ::testing::TestWithParam<std::string> {};

TEST_P(Devices, GiveTheNumbersOfTheHost) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  ScanRequest request = random_tokens_through(GetParam(), 2, 12);
  const ScanResult here = scan(request, {});
  request.device = "cuda";
  expect_same_rows(scan(request, {}).table, here.table);
}

INSTANTIATE_TEST_SUITE_P(Every, Devices, ::testing::ValuesIn(networks()), [](const auto& network) {
  std::string name = network.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

// The device's way on the CPU, for each kind of sites there is: all together take a minute.
TEST(AsOnADevice, ScansGiveTheNumbersOfTheHost) {
  for (const char* network : {"bert", "deepseek-v3", "gpt-oss", "mixtral", "qwen3-next", "t5", "whisper"}) {
    SCOPED_TRACE(network);
    const ScanRequest request = random_tokens_through(network, 2, 12);
    const ScanResult here = scan(request, {});
    EXPECT_GT(here.table.rows.size(), 100U);
    const AsOnDevice as_on_device;
    expect_same_rows(scan(request, {}).table, here.table);
  }
}

}  // namespace
}  // namespace rankscope::test
