// What the least and the best attended key get, against sums entry by entry, and beside the law.
#include <gtest/gtest.h>

#include <algorithm>

#include "attention/variant.h"
#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kColumnHeads = 2, kColumnTokens = 11, kColumnWide = 4;

ModelSpec column_network(const std::string& kind) {
  ModelSpec spec;
  AttentionSpec a;
  a.variant = kind;
  a.heads = a.kv_heads = kColumnHeads;
  a.d_qk = a.d_v = kColumnWide;
  spec.blocks.push_back(classic_block(NormPlace::pre, {}, a, ""));
  return spec;
}

// Patterns of the kind on random queries and keys of that size, [1, H, T, T].
at::Tensor column_pattern(const ModelSpec& spec, double size) {
  const Weights none;
  const std::string name = "attn";
  const at::Tensor q = at::randn({1, kColumnTokens, kColumnHeads, kColumnWide}, at::kDouble) * size,
                   k = at::randn({1, kColumnTokens, kColumnHeads, kColumnWide}, at::kDouble) * size,
                   places = at::arange(kColumnTokens).view({1, -1}), types;
  return attention_variant(spec.blocks[0].attention().variant)
      .prepare({spec.blocks[0].attention(), none, name, q, k, places, places, types})
      ->pattern(0, 1, 0, kColumnTokens);
}

Collected see_columns(const ModelSpec& spec, const at::Tensor& p, int64_t rows) {
  const Packed packed({p.size(2)});
  const Packing packing = packed.packing();
  Seeing seeing(lens_named("column_sums"), {spec, 0, 17, 1, 0.3});
  for (int64_t row = 0; row < p.size(2); row += rows) {
    const at::Tensor tile = p.narrow(2, row, std::min(rows, p.size(2) - row)).clone();
    seeing.tile({tile, {0, row, p.size(2)}, false, 0, packing});
  }
  return seeing.finish();
}

TEST(ColumnSums, AreThoseOfTheMatrixAndKeepTheLaw) {
  at::manual_seed(1);
  for (const std::string kind : {"doubly_normalised", "sinkhorn", "sinkhorn:rounds=1", "sinkhorn:rounds=20"})
    for (const double size : {0.5, 2.0, 8.0}) {
      const ModelSpec spec = column_network(kind);
      const at::Tensor p = column_pattern(spec, size);
      const Collected got = see_columns(spec, p, 4);
      for (int h = 0; h < kColumnHeads; ++h) {
        double least = 1e300, most = 0;
        for (int64_t j = 0; j < kColumnTokens; ++j) {
          double sum = 0;
          for (int64_t i = 0; i < kColumnTokens; ++i) sum += p[0][h][i][j].item<double>();
          least = std::min(least, sum), most = std::max(most, sum);
        }
        // Sums of eleven numbers in another order.
        EXPECT_NEAR(got.of("column_sum_min", 0, h), least, 1e-14 * kColumnTokens) << kind;
        EXPECT_NEAR(got.of("column_sum_max", 0, h), most, 1e-14 * kColumnTokens) << kind;
        EXPECT_EQ(got.of("column_sum_min_bound", 0, h), 1.0 / kColumnTokens) << kind;
        EXPECT_GE(least, 1.0 / kColumnTokens - 1e-14) << kind;
      }
    }
}

TEST(ColumnSums, OfThePrefixFormHaveNoLawAndOfSoftmaxAreNotRead) {
  at::manual_seed(2);
  const ModelSpec prefix = column_network("prefix_normalised"), softmax = column_network("softmax");
  const Collected got = see_columns(prefix, column_pattern(prefix, 2.0), kColumnTokens);
  EXPECT_TRUE(got.has("column_sum_min", 0, 0));
  EXPECT_FALSE(got.has("column_sum_min_bound", 0, 0));
  EXPECT_FALSE(see_columns(softmax, column_pattern(softmax, 2.0), kColumnTokens).has("column_sum_min", 0, 0));
}

}  // namespace
}  // namespace rankscope::testing
