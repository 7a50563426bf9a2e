// Output gates of gated delta rules, against counting them one by one, and through a scan.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "scan/scan.h"
#include "support/lens_run.h"
#include "support/source_tree.h"

namespace rankscope::testing {
namespace {

// Means of a few dozen numbers of at most a few: sums in another order.
constexpr double kOutputGateRounding = 1e-14;

TEST(OutputGatesLens, CountsTheValuesOfEveryHead) {
  at::manual_seed(5);
  const Packed packed({4, 6});
  const Packing packing = packed.packing();
  const at::Tensor gate = 0.5 * at::randn({10, 3, 5}, at::kDouble);
  Seeing seeing(lens_named("output_gates"));
  seeing.whole({gate, packing});
  const Collected got = seeing.finish();
  const auto expect = [&](int64_t sample, int head, const at::Tensor& values) {
    const at::Tensor flat = values.contiguous().view({-1});
    double sum = 0, squares = 0, shut = 0;
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double g = flat[i].item<double>();
      sum += g, squares += g * g, shut += std::fabs(g) < 0.1;
    }
    const auto n = static_cast<double>(flat.numel());
    EXPECT_NEAR(got.of("output_gate_mean", sample, head), sum / n, kOutputGateRounding);
    EXPECT_NEAR(got.of("output_gate_shut", sample, head), shut / n, kOutputGateRounding);
    EXPECT_NEAR(got.of("output_gate_size", sample, head), std::sqrt(squares / n), kOutputGateRounding);
  };
  const at::Tensor first = gate.narrow(0, 0, 4), second = gate.narrow(0, 4, 6);
  for (int h = 0; h < 3; ++h) {
    expect(0, h, first.select(1, h));
    expect(1, h, second.select(1, h));
  }
  expect(1, -1, second);
}

// Layers 0, 1 and 3 of the fixture have one, by the four heads of their values; layer 2 has another gate.
TEST(OutputGatesLens, ReadsThoseOfQwen3Next) {
  ScanRequest r;
  r.model = test::fixtures() / "models" / "qwen3-next";
  r.random_tokens = true;
  r.samples = 2;
  r.max_length = 12;
  r.lenses = {"output_gates"};
  const ScanResult scanned = scan(r, {});
  std::map<std::string, int> rows;
  for (const Row& row : scanned.table.rows)
    if (row.metric == "output_gate_size" && row.head >= 0) {
      EXPECT_GT(row.value, 0);
      ++rows[std::string(row.site.str())];
    }
  EXPECT_EQ(rows, (std::map<std::string, int>{{"blocks.0.attn.hook_output_gate", 4},
                                              {"blocks.1.attn.hook_output_gate", 4},
                                              {"blocks.3.attn.hook_output_gate", 4}}));
}

}  // namespace
}  // namespace rankscope::testing
