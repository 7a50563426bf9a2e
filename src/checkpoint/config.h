// What the architectures share in reading a config.json: keys with two names, and refusals by name of what
// would change the computation.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "spec/limits.h"
#include "spec/model.h"

namespace rankscope {

/// Of two names for one key, the one the config uses; the first where it uses neither, so that errors name
/// that.
inline const char* key_of(const JsonObject& config, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (config.has(name)) return name;
  return *names.begin();
}

inline int64_t size_at(const JsonObject& config, std::initializer_list<const char*> names, int64_t most) {
  return config.integer(key_of(config, names), 1, most);
}

inline int64_t vocabulary_of(const JsonObject& config) {
  return size_at(config, {"vocab_size", "n_token"}, kMaxVocabulary);
}

inline double epsilon_of(const JsonObject& config, const char* key, double otherwise) {
  return config.number(key, 0.0, 1.0, otherwise);
}

inline double init_std_of(const JsonObject& config) {
  return config.number("initializer_range", 0.0, 1e3, 0.02);
}

/// An attention with `heads` heads of width / heads each and the usual scale.
inline AttentionSpec plain_attention(const JsonObject& config, const char* heads_key, int64_t width) {
  AttentionSpec a;
  a.heads = a.kv_heads = config.integer(heads_key, 1, kMaxHeads);
  if (width % a.heads != 0)
    throw Error(fmt::format("\"{}\" is {}, which does not divide the width {}", heads_key, a.heads, width))
        .in(config.place());
  a.d_qk = a.d_v = width / a.heads;
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.d_qk));
  return a;
}

inline Activation activation_of(const JsonObject& config, const char* key, const char* otherwise) {
  const std::string name = config.string(key, otherwise);
  if (name == "gelu" || name == "gelu_python") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "tanh") return Activation::tanh;
  if (name == "linear") return Activation::identity;
  throw Error(fmt::format("the activation \"{}\" ({}) is not supported", printable(name), key))
      .in(config.place())
      .hint("gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, silu, tanh or linear");
}

inline void refuse(const JsonObject& config, const char* key, std::string_view value) {
  throw Error(fmt::format("\"{}\": {} is not supported", key, printable(value))).in(config.place());
}

/// Refuses a switch that would change the computation when it is on.
inline void refuse_true(const JsonObject& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (config.boolean(key, false)) refuse(config, key, "true");
}

/// Refuses any value but the one this program computes.
inline void refuse_other(const JsonObject& config, const char* key, const char* only) {
  const std::string value = config.string(key, only);
  if (value != only) refuse(config, key, '"' + value + '"');
}

/// Heads cut out by the library change the shapes of the rest.
inline void refuse_pruned(const JsonObject& config) {
  if (config.has("pruned_heads") && !config.at("pruned_heads").empty())
    refuse(config, "pruned_heads", "a list of heads");
}

/// Whether the config's "architectures" name a class with a language-model head. One that names nothing
/// leaves it to the tensors.
inline bool promises_head(const JsonObject& config, std::initializer_list<std::string_view> endings) {
  if (!config.has("architectures")) return true;
  const Json& names = config.at("architectures");
  if (!names.is_array()) throw Error("\"architectures\" should be a list of names").in(config.place());
  for (const Json& name : names) {
    if (!name.is_string()) throw Error("\"architectures\" should be a list of names").in(config.place());
    for (const std::string_view ending : endings)
      if (name.get_ref<const std::string&>().ends_with(ending)) return true;
  }
  return names.empty();
}

/// `depth` blocks alike, each with weights of its own.
inline void repeat_block(ModelSpec& spec, const BlockSpec& block, int64_t depth) {
  spec.blocks.assign(static_cast<size_t>(depth), block);
  for (int64_t i = 0; i < depth; ++i) spec.blocks[static_cast<size_t>(i)].weights = i;
  spec.stored_blocks = depth;
}

}  // namespace rankscope
