#include "model/random_source.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/tiny.h"

namespace rankscope {
namespace {

using test::tiny_spec;

TEST(RandomSource, GivesTheSameNumbersWhateverIsAskedFirst) {
  const ModelSpec spec = tiny_spec();
  const auto a = random_source(spec, 1, "float32", "cpu"), b = random_source(spec, 1, "float32", "cpu");
  const at::Tensor first = a->load("blocks.2").get("attn.W_Q").clone();
  b->load("embed");
  b->load("blocks.0");
  EXPECT_TRUE(at::equal(first, b->load("blocks.2").get("attn.W_Q")));
  EXPECT_FALSE(at::equal(first, random_source(spec, 2, "float32", "cpu")->load("blocks.2").get("attn.W_Q")));
}

TEST(RandomSource, DrawsMatricesWithTheSpecsStandardDeviation) {
  ModelSpec spec = tiny_spec();
  spec.embedding.vocabulary = 4000;
  const at::Tensor E = random_source(spec, 1, "float64", "cpu")->row_range("embed.W_E", 0, 4000);
  const double n = static_cast<double>(E.numel());
  // Five standard errors: of the mean 1/sqrt(n), of the deviation 1/sqrt(2n).
  EXPECT_NEAR(E.mean().item<double>() / spec.init.std, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(E.std().item<double>() / spec.init.std, 1.0, 5 / std::sqrt(2 * n));
}

TEST(RandomSource, RowsAreThoseOfTheWholeTable) {
  const auto source = random_source(tiny_spec(), 1, "float32", "cpu");
  const at::Tensor all = source->row_range("embed.W_E", 0, 50);
  EXPECT_TRUE(at::equal(source->rows("embed.W_E", at::tensor({7, 0, 49})),
                        all.index_select(0, at::tensor({7, 0, 49}))));
}

TEST(RandomSource, TiedHeadIsTheEmbedding) {
  ModelSpec spec = tiny_spec();
  spec.output.tied = true;
  const auto source = random_source(spec, 1, "float32", "cpu");
  EXPECT_TRUE(at::equal(source->row_range("embed.W_E", 0, 50), source->row_range("unembed.W_U", 0, 50)));
}

}  // namespace
}  // namespace rankscope
