// The frequencies of rotary positions, as a config states them: transformers 4 says `rope_theta` and
// `rope_scaling`, transformers 5 puts both in `rope_parameters`. Frequency i turns the pair (i, i + d/2) by
// i's angle per token.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace rankscope {

/// theta^(-2i/d): from one turn in 2 pi tokens to one in about theta times that.
inline std::vector<double> plain_frequencies(double theta, int64_t d_head) {
  std::vector<double> out(static_cast<size_t>(d_head / 2));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(d_head));
  return out;
}

/// Llama 3.1: long waves are slowed by `factor`, short ones kept, those between mixed.
inline void stretch_long_waves(std::vector<double>& frequencies, const JsonObject& rope) {
  const double factor = rope.number("factor", 1.0, 1e6);
  const double low = rope.number("low_freq_factor", 1e-6, 1e6),
               high = rope.number("high_freq_factor", 1e-6, 1e6);
  const double context = rope.number("original_max_position_embeddings", 1.0, 1e12);
  if (!(low < high))
    throw Error(
        fmt::format("\"low_freq_factor\" is {}, but must be below \"high_freq_factor\", {}", low, high))
        .in(rope.place());
  for (double& f : frequencies) {
    const double waves =
        context * f / (2.0 * std::numbers::pi);  // in the context the model was first trained with
    if (waves > high) continue;
    const double kept = waves < low ? 0.0 : (waves - low) / (high - low);
    f = (1.0 - kept) * f / factor + kept * f;
  }
}

inline std::vector<double> rotary_frequencies(const JsonObject& config, int64_t d_head) {
  static const Json none = Json::object();
  const bool new_style = config.has("rope_parameters");
  const char* key = new_style ? "rope_parameters" : "rope_scaling";
  const JsonObject rope(config.has(key) ? config.at(key) : none, config.place() + ", " + key);

  const double theta =
      (new_style && rope.has("rope_theta") ? rope : config).number("rope_theta", 1.0, 1e15, 10000.0);
  for (const JsonObject* where : {&config, &rope})
    if (where->number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0)
      throw Error("\"partial_rotary_factor\" other than 1 is not supported").in(where->place());

  std::vector<double> frequencies = plain_frequencies(theta, d_head);
  const std::string type = rope.string(rope.has("rope_type") ? "rope_type" : "type", "default");
  if (type == "default") return frequencies;
  if (type == "linear") {
    const double factor = rope.number("factor", 1.0, 1e6);
    for (double& f : frequencies) f /= factor;
    return frequencies;
  }
  if (type == "llama3") {
    stretch_long_waves(frequencies, rope);
    return frequencies;
  }
  // dynamic and longrope depend on the length of the input, and versions of the library disagree about yarn.
  throw Error(fmt::format("the rotary scaling \"{}\" is not supported", printable(type)))
      .in(rope.place())
      .hint("default, linear or llama3");
}

}  // namespace rankscope
