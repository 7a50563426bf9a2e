// Which words of a config.json describe the language model.
#include "checkpoint/language_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/architecture.h"
#include "spec/json.h"

namespace rankscope {
namespace {

ModelSpec described(const Json& config) { return spec_from_config(config.dump(), "config.json"); }

// Gemma 3 from 4B on, Mistral Small 3.1 and Llava keep what describes their language model in text_config,
// and often only what differs from its class.
TEST(LanguageModel, OfAFolderThatReadsImagesIsDescribedByItsTextConfig) {
  const Json text{{"model_type", "gemma3_text"},
                  {"hidden_size", 2560},
                  {"intermediate_size", 10240},
                  {"num_hidden_layers", 34},
                  {"sliding_window", 1024}};
  Json written = text;
  written.update({{"num_attention_heads", 8},
                  {"num_key_value_heads", 4},
                  {"head_dim", 256},
                  {"vocab_size", 262208},
                  {"max_position_embeddings", 131072}});
  const Json wrapped{{"model_type", "gemma3"},
                     {"architectures", {"Gemma3ForConditionalGeneration"}},
                     {"vision_config", Json::object()},
                     {"text_config", text}};
  EXPECT_EQ(to_json(described(wrapped)), to_json(described(written)));
  EXPECT_EQ(language_config(wrapped).wrapper, "gemma3");
  EXPECT_EQ(language_config(written).wrapper, "");
  // What reads texts otherwise behind its images is not taken for it.
  EXPECT_THROW(described({{"model_type", "paligemma"}, {"text_config", {{"model_type", "gemma2"}}}}), Error);
}

TEST(LanguageModel, WhatAClassTakesByDefaultIsFilledIn) {
  Json config{{"model_type", "mistral"}, {"hidden_size", 64},         {"intermediate_size", 96},
              {"num_hidden_layers", 2},  {"num_attention_heads", 16}, {"vocab_size", 50}};
  EXPECT_EQ(described(config).blocks[0].attention().kv_heads, 8);
  config["num_key_value_heads"] = 4;
  EXPECT_EQ(described(config).blocks[0].attention().kv_heads, 4);
  config["model_type"] = "llama";
  config.erase("num_key_value_heads");
  EXPECT_EQ(described(config).blocks[0].attention().kv_heads, 16);
}

TEST(Mistral, HasItsWindowInEveryLayer) {
  Json config{{"model_type", "mistral"}, {"hidden_size", 64},      {"intermediate_size", 96},
              {"sliding_window", 7},     {"num_hidden_layers", 2}, {"num_attention_heads", 16},
              {"vocab_size", 50}};
  for (const BlockSpec& b : described(config).blocks) EXPECT_EQ(b.attention().window, 7);
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_THROW(described(config), Error);
}

}  // namespace
}  // namespace rankscope
