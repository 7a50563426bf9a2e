// Which blocks have experts and where these are: one tensor each under one of two sets of names, or all in
// one.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"
#include "parts/program.h"

namespace rankscope {

/// An option of a part, left out where it is the part's default.
inline void set_option(PartSpec& part, const std::string& name, double value) {
  for (const PartOption& o : part_named(part.name).options)
    if (o.name == name && value == o.otherwise) return;
  part.options[name] = value;
}

/// Layers that have one plain MLP: those the config lists, and all but every n-th (Qwen3-MoE, Qwen3-Next).
inline std::vector<bool> dense_layers(const JsonObject& config, int64_t depth) {
  const int64_t step = config.integer("decoder_sparse_step", 1, kMaxLayers, 1);
  std::vector<bool> out;
  for (int64_t i = 0; i < depth; ++i) out.push_back((i + 1) % step != 0);
  if (!config.has("mlp_only_layers")) return out;
  for (const Json& layer : config.at("mlp_only_layers")) {
    if (!layer.is_number_integer() || layer < 0)
      throw Error("\"mlp_only_layers\" should list layers, counted from 0").in(config.place());
    if (layer < depth) out[layer.get<size_t>()] = true;
  }
  return out;
}

/// Experts "<module>.<e>.gate_proj", or all in "<module>.gate_up_proj" with the gates first; `older` is what
/// Mixtral's folders call the module, with w1, w2 and w3 for gate, out and in.
inline void expert_weights(WeightList& list, const BlockSpec& block, int64_t width, const std::string& b,
                           const std::string& module, const std::string& older = {}) {
  const BranchSpec* branch = block.mlp_branch();
  if (branch == nullptr || branch->part.name != "experts") return;
  const auto count = static_cast<int64_t>(option_of(branch->part, "experts"));
  const int64_t hidden = branch->mlp()->width;
  for (int64_t e = 0; e < count; ++e) {
    const std::string to = fmt::format("{}mlp.experts.{}.W_", b, e), from = fmt::format("{}.{}.", module, e);
    const auto put = [&](const char* letter, const char* name, const char* old, Source fused) {
      Source source{.tensor = from + name + ".weight"};
      if (!older.empty()) source.other = fmt::format("{}.{}.{}.weight", older, e, old);
      fused.matrix = e;
      source.instead.push_back(std::move(fused));
      list.add(to + letter, std::move(source));
    };
    const std::string both = module + ".gate_up_proj";
    const std::vector<int64_t> shape{count, 2 * hidden, width};
    put("gate", "gate_proj", "w1", {.tensor = both, .stored_rows = 2 * hidden, .stored_shape = shape});
    put("in", "up_proj", "w3",
        {.tensor = both, .first_row = hidden, .stored_rows = 2 * hidden, .stored_shape = shape});
    put("out", "down_proj", "w2", {.tensor = module + ".down_proj", .stored_shape = {count, width, hidden}});
  }
}

}  // namespace rankscope
