#include "checkpoint/language_model.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace rankscope {
namespace {

constexpr std::array<std::string_view, 7> kWrappers{"gemma3",     "idefics3", "internvl", "llava",
                                                    "llava_next", "mistral3", "smolvlm"};

// Defaults of the library's classes that differ from what is taken where a config says nothing: as many key
// and value heads as heads, the width over the heads for a head, and 2,048 positions.
struct Defaults {
  std::string_view model_type;
  int kv_heads, head_dim, positions;  // 0: as usual
  // The whole shape, for a text_config that leaves it out.
  int width = 0, mlp = 0, layers = 0, heads = 0, vocabulary = 0;
};
constexpr Defaults kDefaults[] = {
    {"clip_text_model", 0, 0, 0, 512, 2048, 12, 8, 49408},
    {"clip_vision_model", 0, 0, 0, 768, 3072, 12, 12},
    {"deepseek_v3", 0, 0, 4096},
    {"gemma2", 4, 256, 8192, 2304, 9216, 26, 8, 256000},
    {"gemma3_text", 4, 256, 131072, 2304, 9216, 26, 8, 262208},
    {"gpt_oss", 0, 0, 131072},
    {"llama", 0, 0, 2048, 4096, 11008, 32, 32, 32000},
    {"mistral", 8, 0, 131072, 4096, 14336, 32, 32, 32000},
    {"mixtral", 8, 0, 131072},
    {"phi3", 0, 0, 4096},
    {"qwen2", 0, 0, 32768, 4096, 22016, 32, 32, 151936},
    {"qwen3", 0, 128, 32768, 4096, 22016, 32, 32, 151936},
    {"qwen3_moe", 4, 0, 32768},
    {"smollm3", 4, 0, 32768},
    {"stablelm", 0, 0, 4096},
};

std::string type_of(const Json& config) {
  const auto type = config.is_object() ? config.find("model_type") : config.end();
  return config.is_object() && type != config.end() && type->is_string() ? type->get<std::string>() : "";
}

void fill_in(Json& config, bool whole) {
  const std::string type = type_of(config);
  const auto* of = std::ranges::find(kDefaults, type, &Defaults::model_type);
  if (of == std::end(kDefaults)) return;
  const auto put = [&](const char* key, int value) {
    if (value > 0 && !config.contains(key)) config[key] = value;
  };
  put("num_key_value_heads", of->kv_heads);
  put("head_dim", of->head_dim);
  put("max_position_embeddings", of->positions);
  if (!whole) return;
  put("hidden_size", of->width);
  put("intermediate_size", of->mlp);
  put("num_hidden_layers", of->layers);
  put("num_attention_heads", of->heads);
  put("vocab_size", of->vocabulary);
}

}  // namespace

void fill_in_defaults(Json& config) { fill_in(config, true); }

LanguageConfig language_config(Json config) {
  const std::string type = type_of(config);
  if (std::ranges::find(kWrappers, type) == kWrappers.end() || !config.contains("text_config") ||
      type_of(config["text_config"]).empty()) {
    fill_in(config, false);
    return {std::move(config)};
  }
  Json own = config["text_config"];
  if (config.contains("tie_word_embeddings") && !own.contains("tie_word_embeddings"))
    own["tie_word_embeddings"] = config["tie_word_embeddings"];
  own.erase("architectures");  // the head may be the wrapper's
  fill_in(own, true);
  return {std::move(own), type};
}

}  // namespace rankscope
