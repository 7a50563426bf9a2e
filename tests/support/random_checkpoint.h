// A Hugging Face folder with random weights of any size, written without holding it: every tensor is a window
// of one random buffer. For tests and benchmarks of reading, not for anybody's conclusions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/philox.h"
#include "checkpoint/architecture.h"
#include "checkpoint/safetensors.h"
#include "parts/parameters.h"

namespace rankscope::test {

/// `type` is f32 or f16. Matrices N(0, std^2) (queries and keys four times that, so that attention is not
/// uniform; what is stored with them as well), gains one, biases zero. Larger than `shard` bytes it is
/// written in several files, as published ones are.
inline void write_random_checkpoint(const std::filesystem::path& folder, const std::string& config_text,
                                    StoredType type, double deviation = 0.02,
                                    size_t shard = size_t{5} << 30) {
  __extension__ typedef _Float16 Half;
  std::filesystem::create_directories(folder);
  const Json config = parse_json(config_text, "config.json");
  const JsonObject object(config, "config.json");
  const Architecture& architecture = architecture_for(object);
  const ModelSpec spec = architecture.spec(object);
  const WeightMap map = architecture.weights(spec);
  const size_t bytes = size_of(type);

  int64_t largest = 0;
  for (const Parameter& p : parameters(spec)) {
    const int64_t rows = std::max(p.shape[0], map.at(p.name).stored_rows);
    largest = std::max(largest, element_count(p) / p.shape[0] * rows);
  }
  const int64_t count = largest + (1 << 20);
  const auto fill = [&](auto value) {
    std::vector<std::byte> out(static_cast<size_t>(count) * bytes);
    for (int64_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(value(i));
      const Half half = static_cast<Half>(x);
      std::memcpy(out.data() + static_cast<size_t>(i) * bytes,
                  type == StoredType::f16 ? static_cast<const void*>(&half) : &x, bytes);
    }
    return out;
  };
  const Philox random{1, 0, 0};
  // A repeated million: drawing billions of normals would take longer than any test.
  std::vector<float> million(1 << 20);
  for (size_t i = 0; i < million.size(); ++i) million[i] = static_cast<float>(random.normal(i));
  const auto normal = [&](int64_t i) {
    return million[static_cast<size_t>(i * 7 + i / 1048573) % million.size()];
  };
  const auto plain = fill([&](int64_t i) { return deviation * normal(i); });
  const auto peaked = fill([&](int64_t i) { return 4 * deviation * normal(i); });
  const auto one = fill([](int64_t) { return 1.0; });
  const auto zero = fill([](int64_t) { return 0.0; });

  std::vector<TensorToWrite> tensors;
  std::set<std::string> written;  // a fused tensor serves several parameters
  size_t number = 0;
  for (const Parameter& p : parameters(spec)) {
    const Source& source = map.at(p.name);
    if (p.name == "unembed.W_U" && spec.output.tied) continue;
    if (!written.insert(source.tensor).second) continue;
    const bool scores = p.name.ends_with("W_Q") || p.name.ends_with("W_K");
    const auto& from = p.role == Parameter::Role::gain   ? one
                       : p.role == Parameter::Role::bias ? zero
                       : scores                          ? peaked
                                                         : plain;
    const size_t start = (number++ * 104729 % (1 << 20)) * bytes;
    const std::string prefix = source.outside_base ? "" : std::string(architecture.prefix);
    std::vector<int64_t> shape = p.shape;
    if (source.stored_rows > 0) shape[0] = source.stored_rows;
    if (source.transpose) std::swap(shape[0], shape[1]);
    if (!source.stored_shape.empty()) shape = source.stored_shape;
    size_t elements = 1;
    for (const int64_t n : shape) elements *= static_cast<size_t>(n);
    tensors.push_back({prefix + source.tensor, type, shape, {from.data() + start, elements * bytes}});
  }
  std::vector<std::vector<TensorToWrite>> shards(1);
  size_t size = 0;
  for (TensorToWrite& t : tensors) {
    if (size > 0 && size + t.data.size() > shard) shards.emplace_back(), size = 0;
    size += t.data.size();
    shards.back().push_back(std::move(t));
  }
  Json index{{"weight_map", Json::object()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1
                                 ? "model.safetensors"
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    for (const TensorToWrite& t : shards[i]) index["weight_map"][t.name] = name;
    write_safetensors(folder / name, shards[i]);
  }
  if (shards.size() > 1) write_file(folder / "model.safetensors.index.json", index.dump());
  write_file(folder / "config.json", config_text);
}

inline std::string bert_config(int64_t width = 768, int64_t layers = 12, int64_t heads = 12,
                               int64_t vocabulary = 30522) {
  return Json{
      {"model_type", "bert"},        {"architectures", {"BertModel"}}, {"hidden_size", width},
      {"num_hidden_layers", layers}, {"num_attention_heads", heads},   {"intermediate_size", 4 * width},
      {"vocab_size", vocabulary},    {"max_position_embeddings", 512}, {"type_vocab_size", 2},
      {"hidden_act", "gelu"},        {"layer_norm_eps", 1e-12},        {"initializer_range", 0.02}}
      .dump();
}

/// TinyLlama's shape by default: 1.1 billion parameters.
inline std::string llama_config(int64_t width = 2048, int64_t layers = 22, int64_t heads = 32,
                                int64_t kv_heads = 4, int64_t mlp = 5632, int64_t vocabulary = 32000) {
  return Json{{"model_type", "llama"},
              {"architectures", {"LlamaForCausalLM"}},
              {"hidden_size", width},
              {"num_hidden_layers", layers},
              {"num_attention_heads", heads},
              {"num_key_value_heads", kv_heads},
              {"intermediate_size", mlp},
              {"vocab_size", vocabulary},
              {"max_position_embeddings", 16384},
              {"hidden_act", "silu"},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"tie_word_embeddings", false},
              {"initializer_range", 0.02}}
      .dump();
}

}  // namespace rankscope::test
