// The specs of published checkpoints, from their config.json.
#include <cmath>
#include <numbers>

#include "base/test_support.h"
#include "checkpoint/architecture.h"
#include "checkpoint/configs.h"
#include "parts/parameters.h"

namespace rankscope {
namespace {

using namespace test;

ModelSpec spec_of(std::string_view text) { return spec_from_config(text, "config.json"); }

int64_t count(const ModelSpec& spec, const std::string& part) {
  int64_t n = 0;
  for (const Parameter& p : parameters_of(spec, part)) n += element_count(p);
  return n;
}

// As papers count: a tied vocabulary matrix once.
int64_t total(const ModelSpec& spec) {
  int64_t n = 0;
  for (const Parameter& p : parameters(spec))
    if (p.name != "unembed.W_U" || !spec.output.tied) n += element_count(p);
  return n;
}

TEST(PublishedConfigs, BertBase) {
  const ModelSpec s = spec_of(kBertBase);
  EXPECT_EQ(describe(s),
            "bert width=768 positions=learned vocabulary=30522\n"
            "blocks 0-11: softmax:heads=12,rank=64 mlp=plain:gelu,width=3072 norm=layer:post\n");
  EXPECT_EQ(s.blocks[0].attention().scale, 0.125);
  EXPECT_EQ(s.embedding.positions, 512);
  EXPECT_EQ(s.embedding.types, 2);
  EXPECT_EQ(s.embedding.norm, s.blocks[0].branches[0].behind);
  EXPECT_EQ(s.blocks[0].branches[0].behind.epsilon, 1e-12);
  EXPECT_EQ(s.final_norm.kind, NormKind::none);
  EXPECT_EQ(s.output.kind, HeadKind::transformed);
  EXPECT_TRUE(s.output.tied);
  EXPECT_EQ(count(s, "embed"), 23'837'184);
  EXPECT_EQ(count(s, "blocks.0"), 7'087'872);
  // The library's BertModel has 109,482,240: ours and the pooler's 590,592, which no pass here uses.
  EXPECT_EQ(count(s, "embed") + 12 * count(s, "blocks.0"), 109'482'240 - 590'592);
  EXPECT_EQ(total(s), 109'514'298);  // BertForMaskedLM
}

TEST(PublishedConfigs, RobertaBase) {
  const ModelSpec s = spec_of(kRobertaBase);
  EXPECT_EQ(s.embedding.position_offset, 2);
  EXPECT_EQ(s.embedding.padding_id, 1);
  EXPECT_EQ(s.embedding.positions, 514);
  EXPECT_EQ(s.embedding.types, 1);
  EXPECT_EQ(s.blocks[0].branches[0].behind.epsilon, 1e-5);
  EXPECT_EQ(total(s), 124'697'433);  // RobertaForMaskedLM
}

TEST(PublishedConfigs, DistilBertBase) {
  const ModelSpec s = spec_of(kDistilBertBase);
  EXPECT_EQ(s.depth(), 6);
  EXPECT_EQ(s.embedding.types, 0);
  EXPECT_EQ(s.blocks[0].branches[0].behind.epsilon, 1e-12);
  EXPECT_EQ(count(s, "embed") + 6 * count(s, "blocks.0"), 66'362'880);  // DistilBertModel
  EXPECT_EQ(total(s), 66'985'530);                                      // DistilBertForMaskedLM
}

TEST(PublishedConfigs, AlbertBase) {
  const ModelSpec s = spec_of(kAlbertBase);
  EXPECT_EQ(s.depth(), 12);
  EXPECT_EQ(s.stored_blocks, 1);
  for (const BlockSpec& block : s.blocks) EXPECT_EQ(block.weights, 0);
  EXPECT_TRUE(s.embedding.map);
  EXPECT_EQ(s.embedding.width, 128);
  EXPECT_EQ(s.output.width, 128);
  EXPECT_EQ(s.blocks[0].mlp_branch()->mlp()->activation, Activation::gelu_tanh);
  // The library's AlbertModel has 11,683,584: ours and the pooler's 590,592.
  EXPECT_EQ(count(s, "embed") + count(s, "blocks.0"), 11'683'584 - 590'592);
}

TEST(PublishedConfigs, XlnetBase) {
  const ModelSpec s = spec_of(kXlnetBase);
  EXPECT_EQ(s.position, PositionKind::relative);
  EXPECT_FALSE(s.causal());
  EXPECT_FALSE(s.blocks[0].attention().bias);
  EXPECT_FALSE(s.blocks[0].attention().output_bias);
  EXPECT_EQ(s.embedding.norm.kind, NormKind::none);
  EXPECT_EQ(s.output.kind, HeadKind::linear);
  EXPECT_TRUE(s.output.bias);
  EXPECT_EQ(s.blocks[0].attention().variant, "relative");
  // The library's XLNetModel has 116,718,336: ours and mask_emb.
  EXPECT_EQ(count(s, "embed") + 12 * count(s, "blocks.0"), 116'718'336 - 768);
}

TEST(PublishedConfigs, Gpt2) {
  const ModelSpec s = spec_of(kGpt2);
  EXPECT_EQ(describe(s),
            "gpt2 width=768 positions=learned vocabulary=50257\n"
            "blocks 0-11: softmax:heads=12,rank=64,causal mlp=plain:gelu_tanh,width=3072 norm=layer:pre\n");
  EXPECT_EQ(s.final_norm.kind, NormKind::layer);
  EXPECT_EQ(s.final_norm.epsilon, 1e-5);
  EXPECT_EQ(s.output.kind, HeadKind::linear);
  EXPECT_TRUE(s.output.tied);
  EXPECT_EQ(total(s), 124'439'808);  // GPT2LMHeadModel
}

TEST(PublishedConfigs, Llama2) {
  const ModelSpec s = spec_of(kLlama2);
  EXPECT_EQ(describe(s),
            "llama width=4096 positions=rotary vocabulary=32000\n"
            "blocks 0-31: softmax:heads=32,rank=128,causal mlp=gated:silu,width=11008 norm=rms:pre\n");
  EXPECT_FALSE(s.output.tied);
  EXPECT_EQ(total(s), 6'738'415'616);
  const auto& f = s.blocks[0].attention().rotary_frequencies;
  ASSERT_EQ(f.size(), 64u);
  EXPECT_EQ(f[0], 1.0);
  EXPECT_NEAR(f[32], 1e-2, 1e-16);  // 10000^(-1/2)
  EXPECT_NEAR(f[48], 1e-3, 1e-17);
}

TEST(PublishedConfigs, Llama31StretchesItsLongWaves) {
  const ModelSpec s = spec_of(kLlama31);
  EXPECT_EQ(s.blocks[0].attention().kv_heads, 8);
  EXPECT_EQ(total(s), 8'030'261'248);
  const auto& f = s.blocks[0].attention().rotary_frequencies;
  ASSERT_EQ(f.size(), 64u);
  const auto plain = [](double i) { return std::pow(500000.0, -i / 64.0); };
  EXPECT_EQ(f[0], 1.0);
  EXPECT_NEAR(f[28], plain(28), 1e-15);      // 4.19 waves in 8192 tokens: kept
  EXPECT_NEAR(f[40], plain(40) / 8, 1e-15);  // 0.36 waves: slowed eightfold
  // Block 30 makes 2.78 waves, (2.78 - 1) / (4 - 1) of the way from slowed to kept.
  const double kept = (8192 * plain(30) / (2 * std::numbers::pi) - 1) / 3;
  ASSERT_GT(kept, 0.55);
  ASSERT_LT(kept, 0.65);
  EXPECT_NEAR(f[30], plain(30) * (kept + (1 - kept) / 8), 1e-15);
}

TEST(PublishedConfigs, Mistral) {
  const ModelSpec s = spec_of(kMistral);
  EXPECT_EQ(total(s), 7'241'732'096);
  for (const BlockSpec& block : s.blocks) EXPECT_EQ(block.attention().window, 4096);
}

TEST(PublishedConfigs, Qwen2HasBiasesOnQkvOnly) {
  const ModelSpec s = spec_of(kQwen2);
  EXPECT_TRUE(s.blocks[0].attention().bias);
  EXPECT_FALSE(s.blocks[0].attention().output_bias);
  EXPECT_FALSE(s.blocks[0].mlp_branch()->mlp()->bias);
  EXPECT_EQ(s.blocks[0].attention().window, 0);
  EXPECT_TRUE(s.output.tied);
  EXPECT_EQ(total(s), 494'032'768);
}

TEST(PublishedConfigs, VitBase) {
  const ModelSpec s = spec_of(kVitBase);
  EXPECT_EQ(s.embedding.vocabulary, 0);
  EXPECT_EQ(s.embedding.positions, 197);
  EXPECT_TRUE(s.pre_norm());
  EXPECT_EQ(s.output.kind, HeadKind::none);
  EXPECT_EQ(total(s), 86'389'248 - 590'592);  // ViTModel without its pooler
}

}  // namespace
}  // namespace rankscope
