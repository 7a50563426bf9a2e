// Rotary positions as a config states them: transformers 4 says `rope_theta` and `rope_scaling`, transformers
// 5 puts both in `rope_parameters`, one set for all layers or one for each type of layer. Frequency i turns
// the pair (i, i + n/2) of the first n channels by i's angle per token.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config.h"

namespace rankscope {

/// theta^(-2i/n): from one turn in 2 pi tokens to one in about theta times that.
inline std::vector<double> plain_frequencies(double theta, int64_t channels) {
  std::vector<double> out(static_cast<size_t>(channels / 2));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
  return out;
}

/// Llama 3.1: waves that are long in the context the model was first trained with are slowed by `factor`,
/// short ones kept, those between mixed.
inline void stretch_long_waves(std::vector<double>& frequencies, const JsonObject& rope, double context) {
  const double factor = rope.number("factor", 1.0, 1e6);
  const double low = rope.number("low_freq_factor", 1e-6, 1e6),
               high = rope.number("high_freq_factor", 1e-6, 1e6);
  if (!(low < high))
    throw Error(
        fmt::format("\"low_freq_factor\" is {}, but must be below \"high_freq_factor\", {}", low, high))
        .in(rope.place());
  for (double& f : frequencies) {
    const double waves = context * f / (2.0 * std::numbers::pi);
    if (waves > high) continue;
    const double kept = waves < low ? 0.0 : (waves - low) / (high - low);
    f = (1.0 - kept) * f / factor + kept * f;
  }
}

/// YaRN's growth of attention with the stretch of the context.
inline double yarn_mscale(double factor, double weight = 1.0) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

/// The part of config.json that says how positions turn, whichever version wrote it.
class RopeConfig {
 public:
  /// `layer_type` chooses among sets by type ("full_attention"); a flat set serves all.
  RopeConfig(const JsonObject& config, const std::string& layer_type = {})
      : rope_(choose(config, layer_type)) {}

  const JsonObject& rope() const { return rope_; }
  bool by_type() const { return by_type_; }
  std::string type() const { return rope_.string(rope_.has("rope_type") ? "rope_type" : "type", "default"); }

 private:
  JsonObject choose(const JsonObject& config, const std::string& layer_type) {
    static const Json none = Json::object();
    const char* key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
    refuse_two_sets(config);
    const JsonObject all(config.has(key) ? config.at(key) : none, config.place() + ", " + key);
    for (const char* name : {"full_attention", "sliding_attention"}) {
      if (!all.has(name)) continue;
      if (layer_type.empty() || !all.has(layer_type.c_str()))
        throw Error(
            fmt::format("\"{}\" holds a set of numbers for {}, but none for \"{}\"", key, name, layer_type))
            .in(config.place());
      by_type_ = true;
      return {all.at(layer_type.c_str()), fmt::format("{}, {}", all.place(), layer_type)};
    }
    return all;
  }

  // A stretch that was added by hand to what version 5 had written: which of the two holds differs between
  // versions.
  static void refuse_two_sets(const JsonObject& config) {
    if (!config.has("rope_parameters") || !config.has("rope_scaling")) return;
    const Json &now = config.at("rope_parameters"), &before = config.at("rope_scaling");
    bool same = now.is_object() && before.is_object();
    if (same)
      for (const auto& [key, value] : before.items())
        same = same && now.contains(key) && now.at(key) == value;
    if (same) return;
    throw Error("\"rope_parameters\" and \"rope_scaling\" say different things of the rotation")
        .in(config.place())
        .hint("put all of it into \"rope_parameters\", rope_theta included, and remove \"rope_scaling\"");
  }

  bool by_type_ = false;
  JsonObject rope_;
};

/// The context that a model was first trained with. Version 5 of the library takes the config's own number
/// before that of the set; where they differ, versions do.
inline double original_context(const JsonObject& config, const JsonObject& rope,
                               std::optional<double> otherwise = {}) {
  const char* key = "original_max_position_embeddings";
  if (config.has(key) && rope.has(key) && config.number(key, 1.0, 1e12) != rope.number(key, 1.0, 1e12))
    throw Error(fmt::format("\"{}\" is {} here and {} in {}", key, config.number(key, 1.0, 1e12),
                            rope.number(key, 1.0, 1e12), rope.place()))
        .in(config.place())
        .hint("keep the one that the model was trained with");
  const JsonObject& from = config.has(key) ? config : rope;
  return otherwise ? from.number(key, 1.0, 1e12, *otherwise) : from.number(key, 1.0, 1e12);
}

/// YaRN: short waves are kept, long ones slowed by `factor`, with a ramp between the two; cos and sin grow.
inline void yarn(AttentionSpec& a, const JsonObject& rope, double theta, int64_t channels, double original,
                 double context) {
  const double factor = rope.number("factor", 1.0, 1e6, context / original);
  const double n = static_cast<double>(channels);
  const auto channel_of = [&](double turns) {  // the one that turns that often in the original context
    return n * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = channel_of(rope.number("beta_fast", 1e-6, 1e6, 32)),
         high = channel_of(rope.number("beta_slow", 1e-6, 1e6, 1));
  if (rope.boolean("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, n - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < a.rotary_frequencies.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    a.rotary_frequencies[i] *= slowed / factor + (1 - slowed);
  }
  const double one = rope.number("mscale", 0, 1e6, 0), all = rope.number("mscale_all_dim", 0, 1e6, 0);
  const double usual =
      one != 0 && all != 0 ? yarn_mscale(factor, one) / yarn_mscale(factor, all) : yarn_mscale(factor);
  a.rotary_scale = rope.number("attention_factor", 0, 1e6, usual);
}

inline std::vector<double> divided(const std::vector<double>& frequencies, const JsonObject& rope,
                                   const char* key) {
  const Json& factors = rope.at(key);
  if (!factors.is_array() || factors.size() != frequencies.size())
    throw Error(fmt::format("\"{}\" should list {} numbers", key, frequencies.size())).in(rope.place());
  std::vector<double> out = frequencies;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!factors[i].is_number() || !(factors[i].get<double>() > 0))
      throw Error(fmt::format("\"{}\" should list numbers above 0", key)).in(rope.place());
    out[i] /= factors[i].get<double>();
  }
  return out;
}

/// LongRoPE: a factor for every frequency, one list for texts up to the original context and one for longer.
inline void longrope(AttentionSpec& a, const JsonObject& rope, double original, double context) {
  const double factor = rope.number("factor", 1e-6, 1e6, context / original);
  const double usual = factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original));
  a.rotary_scale = rope.number("attention_factor", 0, 1e6, usual);
  a.rotary_long = divided(a.rotary_frequencies, rope, "long_factor");
  a.rotary_frequencies = divided(a.rotary_frequencies, rope, "short_factor");
  a.rotary_context = static_cast<int64_t>(original);
}

/// The base of the frequencies, wherever the config has put it.
inline double rope_theta_of(const JsonObject& config, const std::string& layer_type, double otherwise) {
  const RopeConfig from(config, layer_type);
  if (from.rope().has("rope_theta")) return from.rope().number("rope_theta", 1.0, 1e15);
  // The config's own number is of layers that see everything, where types have sets of their own.
  if (from.by_type() && layer_type == "sliding_attention") return otherwise;
  return config.number(key_of(config, {"rope_theta", "rotary_emb_base"}), 1.0, 1e15, otherwise);
}

inline Error odd_head_width(int64_t width, const JsonObject& config) {
  return Error(fmt::format("the head width is {}, but rotary positions need an even one up to {}", width,
                           kMaxHeadWidth))
      .in(config.place())
      .hint("check head_dim, or hidden_size and num_attention_heads");
}

/// What a family takes where its config does not say.
struct RotationDefaults {
  double part = 1.0;     // share of the channels that turns
  bool partial = false;  // whether the config may choose another share
  double theta = 10000.0;
};

/// Gives `a` the rotation of `config`: `width` is the head's, or what of it is meant to turn.
inline void set_rotation(AttentionSpec& a, const JsonObject& config, int64_t width,
                         const std::string& layer_type = {}, const RotationDefaults& otherwise = {}) {
  const RopeConfig from(config, layer_type);
  const JsonObject& rope = from.rope();
  const double theta = rope_theta_of(config, layer_type, otherwise.theta);
  const char* part_key = key_of(config, {"partial_rotary_factor", "rotary_pct"});
  const double share = rope.has("partial_rotary_factor") ? rope.number("partial_rotary_factor", 0.0, 1.0)
                                                         : config.number(part_key, 0.0, 1.0, otherwise.part);
  if (share != 1.0 && !otherwise.partial)
    throw Error("\"partial_rotary_factor\" other than 1 is not supported")
        .in((rope.has("partial_rotary_factor") ? rope : config).place());
  if (share == 1.0 && width % 2 != 0) throw odd_head_width(width, config);
  const auto channels = static_cast<int64_t>(static_cast<double>(width) * share);
  if (channels < 2 || channels % 2 != 0)
    throw Error(
        fmt::format("{} of a head's channels would be rotated, but rotary positions need an even number",
                    channels))
        .in(config.place())
        .hint("check head_dim, or hidden_size and num_attention_heads, and partial_rotary_factor");
  a.rotary_frequencies = plain_frequencies(theta, channels);
  const double context = config.number("max_position_embeddings", 1.0, 1e12, 2048);

  const std::string type = from.type();
  if (type == "default") return;
  if (type == "linear") {
    const double factor = rope.number("factor", 1.0, 1e6);
    for (double& f : a.rotary_frequencies) f /= factor;
  } else if (type == "llama3") {
    stretch_long_waves(a.rotary_frequencies, rope, original_context(config, rope));
  } else if (type == "longrope" || type == "su" || (type == "yarn" && rope.has("short_factor"))) {
    longrope(a, rope, original_context(config, rope, context), context);  // the names that Phi-3 had for it
  } else if (type == "yarn") {
    yarn(a, rope, theta, channels, original_context(config, rope, context), context);
  } else if (type == "dynamic") {
    a.rotary_growth = rope.number("factor", 1.0, 1e6);
    a.rotary_context = static_cast<int64_t>(context);
  } else {
    throw Error(fmt::format("the rotary scaling \"{}\" is not supported", printable(type)))
        .in(rope.place())
        .hint("default, linear, llama3, yarn, longrope or dynamic");
  }
}

}  // namespace rankscope
