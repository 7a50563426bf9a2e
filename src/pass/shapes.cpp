#include "pass/shapes.h"

#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/architecture.h"
#include "checkpoint/checkpoint.h"
#include "parts/check.h"

namespace rankscope {
namespace {

struct Shape {
  const char* name;
  const char* type;  // config.json's model_type
  int64_t layers, width, heads, mlp, vocabulary;
};

constexpr std::array<Shape, 9> kShapes{{{"albert-base", "albert", 12, 768, 12, 3072, 30000},
                                        {"bert-base", "bert", 12, 768, 12, 3072, 28996},
                                        {"bert-large", "bert", 24, 1024, 16, 4096, 28996},
                                        {"distilbert-base", "distilbert", 6, 768, 12, 3072, 30522},
                                        {"gpt2", "gpt2", 12, 768, 12, 3072, 50257},
                                        {"roberta-base", "roberta", 12, 768, 12, 3072, 50265},
                                        {"tinyllama", "llama", 22, 2048, 32, 5632, 32000},
                                        {"vit-base", "vit", 12, 768, 12, 3072, 0},
                                        {"xlnet-base", "xlnet", 12, 768, 12, 3072, 32000}}};

// Every architecture reads the words it knows and leaves the others.
Json config_of(const Shape& s) {
  const std::string type = s.type;
  Json c{{"model_type", type}, {"initializer_range", 0.02}, {"vocab_size", s.vocabulary}};
  if (type == "gpt2") {
    c.update({{"n_layer", s.layers}, {"n_embd", s.width}, {"n_head", s.heads}, {"n_positions", 1024}});
  } else if (type == "distilbert") {
    c.update({{"n_layers", s.layers}, {"dim", s.width}, {"n_heads", s.heads}, {"hidden_dim", s.mlp}});
    c["max_position_embeddings"] = 512;
  } else if (type == "xlnet") {
    c.update({{"n_layer", s.layers}, {"d_model", s.width}, {"n_head", s.heads}, {"d_inner", s.mlp}});
  } else {
    c.update({{"num_hidden_layers", s.layers},
              {"hidden_size", s.width},
              {"num_attention_heads", s.heads},
              {"intermediate_size", s.mlp},
              {"max_position_embeddings", type == "roberta" ? 514
                                          : type == "llama" ? 2048
                                                            : 512}});
  }
  if (type == "albert") c.update({{"embedding_size", 128}, {"hidden_act", "gelu_new"}});
  if (type == "roberta") c.update({{"pad_token_id", 1}, {"layer_norm_eps", 1e-5}, {"type_vocab_size", 1}});
  if (type == "vit") c.update({{"image_size", 224}, {"patch_size", 16}, {"num_channels", 3}});
  if (type == "llama") c.update({{"num_key_value_heads", 4}, {"hidden_act", "silu"}, {"rms_norm_eps", 1e-5}});
  return c;
}

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& s : kShapes) names.emplace_back(s.name);
  return names;
}

ModelSpec shape_spec(std::string_view name) {
  const std::filesystem::path path(name);
  std::error_code ignored;
  const auto checked = [](ModelSpec spec, const std::string& place) {
    check(spec, place);
    return spec;
  };
  // A folder of that name beside us is another thing: ./gpt2 means it.
  for (const Shape& s : kShapes)
    if (name == s.name) return spec_from_config(config_of(s).dump(), "--init " + std::string(name));
  if (std::filesystem::is_regular_file(path, ignored))
    return checked(spec_from_config(read_json(path, 64 << 20).dump(), path.string()), path.string());
  if (std::filesystem::is_directory(path, ignored) || files_of(path) != path)
    return checked(spec_of_folder(path), path.string());
  throw unknown_name("shape", name, shape_names());
}

}  // namespace rankscope
