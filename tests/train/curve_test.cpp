// The learning curve of a trial: one JSON object a line, whatever became of the trial.
#include "train/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/files.h"
#include "base/json.h"
#include "base/test_support.h"

namespace rankscope {
namespace {

TEST(Curve, IsJsonWhenATrialDiverges) {
  const test::TempFolder folder;
  const auto file = folder / "curve.jsonl";
  {
    Curve curve(file, 0);
    curve.add({.step = 1, .loss = 0.5, .lr = 0.1, .test_mse = 0.25, .test_mse_stderr = 0.01});
    curve.add({.step = 2,
               .loss = std::numeric_limits<double>::infinity(),
               .lr = 0.1,
               .test_mse = -std::nan(""),
               .test_mse_stderr = std::nan("")});
  }
  const std::string text = read_file(file, 1 << 20);
  const size_t end = text.find('\n');
  EXPECT_EQ(parse_json(text.substr(0, end), "first"),
            Json::parse(R"({"step": 1, "loss": 0.5, "lr": 0.1, "test_mse": 0.25, "test_mse_stderr": 0.01})"));
  EXPECT_EQ(
      parse_json(text.substr(end + 1), "second"),
      Json::parse(R"({"step": 2, "loss": null, "lr": 0.1, "test_mse": null, "test_mse_stderr": null})"));
}

}  // namespace
}  // namespace rankscope
