// What is said of another attention in the place of the trained one.
#include "verdict/planted_table.h"

namespace rankscope {
namespace {

class Replaced : public Verdict {
 protected:
  /// A variant whose layer 2 goes by another rule: its ranks there, and what it costs the output.
  void replaced(const std::string& variant, double rank, double cost, double error) {
    for (int h = 0; h < kHeads; ++h) attention_rank(variant, 2, h, rank);
    output_kl(variant, cost);
    table_.rows.back().stderr_ = error;
  }
  void attention_rank(const std::string& variant, int layer, int h, double rank) {
    add(variant, fmt::format("blocks.{}.attn.hook_pattern", layer), layer, h, "effective_rank_rel", rank);
  }
  void SetUp() override {
    Verdict::SetUp();
    for (int layer = 0; layer < kLayers; ++layer)
      for (int h = 0; h < kHeads; ++h) attention_rank("full", layer, h, layer == 2 ? 0.4 : 0.9);
  }
};

TEST_F(Replaced, EveryReplacementSaysWhatTheOutputLosesAndWhatTheRankDoes) {
  replaced("replace:softmax=sigmoid@L2", 0.2, 0.044, 0.002);
  replaced("replace:softmax=linear@L2", 0.5, 0.0002, 0.0001);
  replaced("replace:softmax=fastmax@L2", 0.3, 0.3, 0.2);
  const std::string there = "; effective rank of attention there, as a share of the tokens: 0.4 before, ";
  EXPECT_EQ(
      said("replaced"),
      (Lines{"softmax=sigmoid@L2, without training, costs output_kl 0.044 ± 0.002, more than epsilon 0.001" +
                 there + "0.2 after",
             "softmax=linear@L2, without training, costs output_kl 0.0002 ± 0.0001, less than epsilon 0.001" +
                 there + "0.5 after",
             "? softmax=fastmax@L2, without training, costs output_kl 0.3 ± 0.2, not known whether more than "
             "epsilon 0.001, as its error is too large" +
                 there + "0.3 after",
             "a stress test of these weights: a network trained with it may differ"}));
  for (const Finding& f : all("replaced")) EXPECT_TRUE(f.asked) << f.sentence;
}

TEST_F(Replaced, OneSampleDoesNotDecideWhatAReplacementCosts) {
  replaced("replace:softmax=sigmoid@L2", 0.2, 0.044, kNone);
  table_.rows.back().n = 1;
  const Finding f = all("replaced").front();
  EXPECT_FALSE(f.known);
  EXPECT_NE(f.sentence.find("costs output_kl 0.044, not known whether more than epsilon 0.001, as one sample "
                            "has no error; effective rank"),
            std::string::npos)
      << f.sentence;
}

TEST_F(Replaced, ALongNameKeepsTheLayersAtItsEnd) {
  const std::string kind = "softmax=mixed:" + std::string(150, 'x');
  replaced("replace:" + kind + "@L2", 0.2, 0.044, 0.002);
  replaced("replace:" + kind + "@L1-2", 0.2, 0.044, 0.002);
  const Lines lines = said("replaced");
  ASSERT_EQ(lines.size(), 3u);  // and what all of them are
  EXPECT_TRUE(lines[0].starts_with(kind + "@L2, without training")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(kind + "@L1-2, without training")) << lines[1];
}

}  // namespace
}  // namespace rankscope
