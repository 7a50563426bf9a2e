// Qwen3-Next and Qwen3.5: what their configs say, where their tensors are, and what is refused.
#include "base/test_support.h"
#include "checkpoint/architecture.h"
#include "checkpoint/checkpoint.h"
#include "parts/check.h"
#include "parts/parameters.h"

namespace rankscope {
namespace {

using namespace test;

// Qwen3-Next-80B-A3B as published.
constexpr std::string_view kNext = R"({
  "architectures": ["Qwen3NextForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
  "decoder_sparse_step": 1, "eos_token_id": 151645, "full_attention_interval": 4, "head_dim": 256,
  "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5120,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
  "linear_num_value_heads": 32, "linear_value_head_dim": 128, "max_position_embeddings": 262144,
  "mlp_only_layers": [], "model_type": "qwen3_next", "moe_intermediate_size": 512, "norm_topk_prob": true,
  "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 48,
  "num_key_value_heads": 2, "partial_rotary_factor": 0.25, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 10000000, "shared_expert_intermediate_size": 512, "tie_word_embeddings": false,
  "vocab_size": 151936})";

ModelSpec spec_with(const Json& changes) {
  Json config = parse_json(kNext, "config.json");
  for (const auto& [key, value] : changes.items()) config[key] = value;
  ModelSpec spec = spec_from_config(config.dump(), "config.json");
  check(spec, "config.json");
  return spec;
}
Error refusal(const Json& changes) {
  return error_of([&] { spec_with(changes); });
}

// By hand: 36 delta rules of 33,718,464 numbers, 12 attentions of 27,263,488, 48 mixtures of 1,614,809,088,
// 97 norms of 2,048 and two vocabularies of 311,164,928.
TEST(Qwen3Next, CountsThePublishedParameters) { EXPECT_EQ(parameter_count(spec_with({})), 79'674'391'296); }

TEST(Qwen3Next, MixesLayersWithAStateAndLayersWithPatterns) {
  const ModelSpec s = spec_with({});
  for (size_t i = 0; i < s.blocks.size(); ++i) {
    const BranchSpec& b = *s.blocks[i].attention_branch();
    const AttentionSpec& a = *b.attention();
    const bool full = i % 4 == 3;
    EXPECT_EQ(b.part.name, full ? "gated_attention" : "gated_delta_attention") << i;
    EXPECT_EQ(a.heads, full ? 16 : 32);
    EXPECT_EQ(a.kv_heads, full ? 2 : 16);
    EXPECT_EQ(a.rotary_frequencies.size(), full ? 32u : 0u);
    EXPECT_EQ(a.qk_norm.there(), full);
    EXPECT_EQ(s.blocks[i].mlp_branch()->part.name, "experts");
  }
  EXPECT_EQ(spec_with({{"full_attention_interval", 3}}).blocks[2].attention().variant, "softmax");
}

TEST(Qwen3Next, HasPlainMlpsWhereTheConfigSaysSo) {
  const auto mlp = [](const ModelSpec& s, size_t i) { return s.blocks[i].mlp_branch()->part.name; };
  const ModelSpec listed = spec_with({{"mlp_only_layers", {1}}});
  EXPECT_EQ(mlp(listed, 0), "experts");
  EXPECT_EQ(mlp(listed, 1), "gated_mlp");
  EXPECT_EQ(listed.blocks[1].mlp_branch()->mlp()->width, 5120);
  EXPECT_EQ(mlp(spec_with({{"decoder_sparse_step", 2}}), 0), "gated_mlp");
  EXPECT_EQ(mlp(spec_with({{"num_experts", 0}}), 7), "gated_mlp");
}

TEST(Qwen3Next, RefusesWhatCannotBe) {
  for (const char* key : {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                          "linear_value_head_dim", "linear_conv_kernel_dim", "num_experts_per_tok",
                          "moe_intermediate_size", "shared_expert_intermediate_size"})
    for (const Json& value : {Json(0), Json(-1), Json(1'000'000'000'000), Json(1.5), Json("4"), Json(true)}) {
      const Error error = refusal({{key, value}});
      EXPECT_NE(error.message().find('"' + std::string(key) + '"'), std::string::npos) << error.what();
      EXPECT_EQ(error.place(), "config.json");
    }
  EXPECT_EQ(refusal({{"linear_num_value_heads", 24}}).message(),
            "\"linear_num_value_heads\" is 24, which is no multiple of the 16 key heads");
  EXPECT_EQ(refusal({{"linear_num_key_heads", 64}}).message(),
            "\"linear_num_value_heads\" is 32, which is no multiple of the 64 key heads");
  EXPECT_EQ(refusal({{"layer_types", {"full_attention"}}}).message(), "\"layer_types\" should list 48 names");
  EXPECT_EQ(refusal({{"layer_types", "linear_attention"}}).message(), "\"layer_types\" should list 48 names");
  EXPECT_EQ(refusal({{"layer_types", Json::array({"mamba"})}, {"num_hidden_layers", 1}}).message(),
            "\"layer_types\" holds \"mamba\", which is not supported");
  EXPECT_EQ(refusal({{"full_attention_interval", 0}}).message(),
            "\"full_attention_interval\" should be a whole number from 1 to 4096, but is 0");
  EXPECT_EQ(refusal({{"hidden_act", "gelu"}}).message(), "\"hidden_act\": \"gelu\" is not supported");
  EXPECT_EQ(refusal({{"num_experts", 8}}).message(), "a token cannot take 10 of 8 experts");
  EXPECT_EQ(refusal({{"text_config", 3}}).place(), "config.json, text_config");
}

// The folder of the fixture with one tensor left out or of another shape.
TEST(Qwen3Next, NamesTensorsThatAreMissingOrDoNotFit) {
  const auto folder = source_tree() / "tests/fixtures/models/qwen3-next";
  const TempFolder copy;
  const auto changed = [&](const Json& changes) {
    Json config = read_json(folder / "config.json");
    for (const auto& [key, value] : changes.items()) config[key] = value;
    put(copy / "config.json", config.dump());
    std::filesystem::copy_file(folder / "model.safetensors", copy / "model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    return error_of([&] { Checkpoint checkpoint(copy.path()); });
  };
  EXPECT_NE(changed({{"linear_conv_kernel_dim", 3}}).place().find("conv1d.weight"), std::string::npos);
  EXPECT_NE(changed({{"linear_num_key_heads", 1}}).place().find("in_proj_qkvz.weight"), std::string::npos);
  const Error error = changed({{"layer_types", std::vector<std::string>(4, "linear_attention")}});
  EXPECT_NE(error.message().find("model.layers.2.linear_attn.in_proj_qkvz.weight"), std::string::npos)
      << error.what();
}

// Qwen3.5 beside a network for images: its tensors stand behind another word, its vocabulary does not.
TEST(Qwen3Next, ReadsTheLanguageModelOfAFolderThatReadsImagesToo) {
  const Checkpoint c(source_tree() / "tests/fixtures/models/qwen3-5");
  EXPECT_EQ(c.place("blocks.0.attn.W_V").tensor,
            "model.language_model.layers.0.linear_attn.in_proj_qkv.weight");
  EXPECT_TRUE(c.spec().output.tied);
  EXPECT_EQ(c.spec().blocks[0].attention().heads, 3);
  EXPECT_EQ(c.spec().blocks[0].attention().kv_heads, 1);
}

}  // namespace
}  // namespace rankscope
