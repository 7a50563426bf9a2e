// A config.json without weights starts as the original's own rule says: the deviation of every kind of
// tensor, measured on what is drawn.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/architecture.h"
#include "checkpoint/checkpoint.h"
#include "parts/check.h"
#include "parts/parameters.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

struct Drawn {
  double mean = 0, std = 0, largest = 0;
  int64_t count = 0;
};

std::vector<float> numbers(const ModelSpec& spec, const std::string& name) {
  for (const Parameter& p : parameters(spec)) {
    if (p.name != name) continue;
    std::vector<float> x(static_cast<size_t>(element_count(p)));
    draw(p, spec, 3, 0, element_count(p), x.data());
    return x;
  }
  ADD_FAILURE() << "there is no parameter " << name;
  return {};
}

Drawn drawn(const ModelSpec& spec, const std::string& name) {
  const std::vector<float> x = numbers(spec, name);
  Drawn d;
  d.count = static_cast<int64_t>(x.size());
  for (const double v : x)
    d.mean += v / static_cast<double>(d.count), d.largest = std::max(d.largest, std::fabs(v));
  for (const double v : x) d.std += (v - d.mean) * (v - d.mean) / static_cast<double>(d.count);
  d.std = std::sqrt(d.std);
  return d;
}

ModelSpec spec_of(const std::string& config) {
  const ModelSpec spec = spec_from_config(config, "test");
  check(spec, "test");
  return spec;
}

// The error of a measured deviation of n normal numbers is 1 / sqrt(2 n) of it: five of those.
void expect_std(const ModelSpec& spec, const std::string& name, double expected) {
  const Drawn d = drawn(spec, name);
  const double n = static_cast<double>(d.count);
  EXPECT_NEAR(d.std, expected, 5 * expected / std::sqrt(2 * n)) << spec.architecture << " " << name;
  EXPECT_NEAR(d.mean, 0, 5 * expected / std::sqrt(n)) << spec.architecture << " " << name;
}

void expect_constant(const ModelSpec& spec, const std::string& name, double value) {
  const Drawn d = drawn(spec, name);
  EXPECT_EQ(d.std, 0) << name;
  EXPECT_EQ(d.mean, static_cast<double>(static_cast<float>(value))) << name;
}

TEST(Init, MostArchitecturesHaveOneDeviationAndBiasesOfZero) {
  const ModelSpec s = spec_of(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 80, "initializer_range": 0.05,
    "attention_bias": true, "max_position_embeddings": 16})");
  for (const char* name : {"embed.W_E", "blocks.1.attn.W_Q", "blocks.1.attn.W_O", "blocks.0.mlp.W_out"})
    expect_std(s, name, 0.05);
  expect_constant(s, "blocks.0.attn.b_Q", 0);
  expect_constant(s, "blocks.0.ln1.w", 1);
}

TEST(Init, Gpt2WritesLessTheDeeperItIs) {
  const ModelSpec s = spec_of(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 8, "n_head": 4,
    "n_positions": 40, "vocab_size": 80})");
  expect_std(s, "blocks.3.attn.W_Q", 0.02);
  expect_std(s, "blocks.3.mlp.W_in", 0.02);
  expect_std(s, "embed.W_pos", 0.02);
  expect_std(s, "blocks.3.attn.W_O", 0.02 / 4);  // sqrt(2 * 8)
  expect_std(s, "blocks.3.mlp.W_out", 0.02 / 4);
}

TEST(Init, T5GoesByWidths) {
  const ModelSpec s = spec_of(R"({"model_type": "t5", "d_model": 64, "d_kv": 12, "d_ff": 100, "num_layers": 2,
    "num_heads": 5, "vocab_size": 80, "initializer_factor": 0.5, "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": false, "architectures": ["T5ForConditionalGeneration"]})");
  for (const std::string at : {"blocks.1.attn.", "blocks.0.cross.", "encoder.blocks.1.attn."}) {
    expect_std(s, at + "W_Q", 0.5 / std::sqrt(64.0 * 12));
    expect_std(s, at + "W_K", 0.5 / std::sqrt(64.0));
    expect_std(s, at + "W_V", 0.5 / std::sqrt(64.0));
    expect_std(s, at + "W_O", 0.5 / std::sqrt(60.0));
  }
  expect_std(s, "blocks.0.mlp.W_in", 0.5 / std::sqrt(64.0));
  expect_std(s, "blocks.0.mlp.W_gate", 0.5 / std::sqrt(64.0));
  expect_std(s, "blocks.0.mlp.W_out", 0.5 / std::sqrt(100.0));
  expect_std(s, "blocks.0.attn.bucket_bias", 0.5 / std::sqrt(64.0));
  expect_std(s, "embed.W_E", 0.5);
  expect_std(s, "unembed.W_U", 0.5);
  expect_constant(s, "encoder.blocks.0.ln1.w", 0.5);
}

// T5 stores one vocabulary and, for each stream, one bias by distance.
TEST(Init, WhatIsStoredOnceIsDrawnOnce) {
  const ModelSpec s = Checkpoint(test::fixtures() / "models" / "t5").spec();
  const auto first = [&](const std::string& name) { return numbers(s, name).at(5); };
  EXPECT_EQ(first("embed.W_E"), first("encoder.embed.W_E"));
  EXPECT_EQ(first("blocks.0.attn.bucket_bias"), first("blocks.2.attn.bucket_bias"));
  EXPECT_NE(first("blocks.0.attn.bucket_bias"), first("encoder.blocks.0.attn.bucket_bias"));
  EXPECT_NE(first("blocks.0.attn.W_Q"), first("encoder.blocks.0.attn.W_Q"));
}

TEST(Init, ModernBertCutsItsNormalNumbers) {
  const ModelSpec s = spec_of(R"({"model_type": "modernbert", "hidden_size": 64, "num_hidden_layers": 8,
    "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 80, "initializer_range": 0.02,
    "initializer_cutoff_factor": 2.0, "architectures": ["ModernBertForMaskedLM"]})");
  // Of a normal number within two deviations: 1 - 2 * 2 phi(2) / erf(sqrt(2)), under the root.
  const double phi = std::exp(-2.0) / std::sqrt(2 * M_PI);
  const double kept = std::sqrt(1 - 4 * phi / std::erf(std::sqrt(2.0)));
  EXPECT_NEAR(kept, 0.8796, 1e-4);
  for (const auto& [name, std] : {std::pair{"blocks.3.attn.W_Q", 0.02},
                                  {"blocks.3.mlp.W_in", 0.02},
                                  {"embed.W_E", 0.02},
                                  {"blocks.3.attn.W_O", 0.005},
                                  {"blocks.3.mlp.W_out", 0.005},
                                  {"unembed.W_T", 0.005}}) {
    expect_std(s, name, kept * std);
    EXPECT_LE(drawn(s, name).largest, 2 * std * (1 + 1e-6)) << name;  // rounded to float32
  }
}

TEST(Init, ClipGoesByWidthAndDepth) {
  const ModelSpec vision = spec_of(R"({"model_type": "clip_vision_model", "hidden_size": 64,
    "num_hidden_layers": 8, "num_attention_heads": 4, "intermediate_size": 96, "image_size": 32,
    "patch_size": 8, "initializer_factor": 2.0})");
  const double width = 2.0 / 8;  // 2 / sqrt(64)
  expect_std(vision, "blocks.3.attn.W_Q", width / 4);
  expect_std(vision, "blocks.3.attn.W_O", width);
  expect_std(vision, "blocks.3.mlp.W_in", width / std::sqrt(2.0));
  expect_std(vision, "blocks.3.mlp.W_out", width / 4);
  expect_std(vision, "embed.cls", width);
  expect_std(vision, "embed.W_patch", 0.04);
  expect_std(vision, "embed.W_pos", 0.04);
  const ModelSpec text = spec_of(R"({"model_type": "clip_text_model", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 80,
    "initializer_range": 0.5})");
  expect_std(text, "embed.W_E", 0.02);
  expect_std(text, "embed.W_pos", 0.02);
}

TEST(Init, EncodersOfImagesDrawTheirClassTokenOrLeaveItAtZero) {
  const std::string sizes = R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 96, "image_size": 32, "patch_size": 8})";
  expect_std(spec_of(R"({"model_type": "vit", )" + sizes), "embed.cls", 0.02);
  const ModelSpec deit = spec_of(R"({"model_type": "deit", )" + sizes);
  for (const char* name : {"embed.cls", "embed.class_tokens", "embed.W_pos"}) expect_constant(deit, name, 0);
  const ModelSpec dino =
      spec_of(R"({"model_type": "dinov2_with_registers", "layerscale_value": 0.25, )" + sizes);
  expect_constant(dino, "blocks.1.attn.layer_scale", 0.25);
  expect_constant(dino, "blocks.1.mlp.layer_scale", 0.25);
  expect_constant(dino, "embed.registers", 0);
  expect_std(dino, "embed.cls", 0.02);
}

TEST(Init, GptOssDrawsItsSinksAndTheBiasOfItsRouter) {
  const ModelSpec s = spec_of(R"({"model_type": "gpt_oss", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 96,
    "vocab_size": 80, "num_local_experts": 48, "num_experts_per_tok": 2, "initializer_range": 0.3,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}})");
  expect_std(s, "blocks.0.attn.sinks", 0.3);
  expect_std(s, "blocks.0.mlp.b_router", 0.3);
  expect_std(s, "blocks.0.mlp.experts.7.W_in", 0.3);
  expect_constant(s, "blocks.0.mlp.experts.7.b_in", 0);
}

TEST(Init, WhisperHearsBySinusoids) {
  const ModelSpec s = spec_of(R"({"model_type": "whisper", "d_model": 8, "num_mel_bins": 5,
    "max_source_positions": 6, "vocab_size": 80, "encoder_layers": 1, "encoder_attention_heads": 2,
    "encoder_ffn_dim": 9, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 9,
    "init_std": 0.1})");
  const std::vector<float> x = numbers(s, "encoder.embed.W_pos");
  ASSERT_EQ(x.size(), 6u * 8u);
  for (int t = 0; t < 6; ++t)
    for (int c = 0; c < 4; ++c) {
      const double angle = t * std::exp(-std::log(10000.0) / 3 * c);
      EXPECT_FLOAT_EQ(x[static_cast<size_t>(t * 8 + c)], static_cast<float>(std::sin(angle)));
      EXPECT_FLOAT_EQ(x[static_cast<size_t>(t * 8 + 4 + c)], static_cast<float>(std::cos(angle)));
    }
  expect_std(s, "embed.W_E", 0.1);
  expect_std(s, "encoder.embed.W_conv1", 0.1);
}

// Every recorded config starts with finite numbers, gains of one kind and no matrix of zeros but those that
// are meant to be.
TEST(Init, EveryConfigHasAStart) {
  for (const auto& entry : std::filesystem::directory_iterator(test::fixtures() / "models")) {
    if (!entry.is_directory() || entry.path().filename() == "clip") continue;
    const ModelSpec s = spec_of_folder(entry.path());
    check(s, entry.path().string());
    for (const Parameter& p : parameters(s)) {
      const Drawn d = drawn(s, p.name);
      EXPECT_TRUE(std::isfinite(d.mean) && std::isfinite(d.std)) << entry.path() << " " << p.name;
      const bool deit = s.init.constants.count("embed.W_pos") > 0 && p.name.starts_with("embed.");
      if (p.role == Parameter::Role::matrix && p.name != "embed.registers" && !deit) {
        EXPECT_GT(d.std, 0) << entry.path() << " " << p.name;
      }
    }
  }
}

}  // namespace
}  // namespace rankscope
