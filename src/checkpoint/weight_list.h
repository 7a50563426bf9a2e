// Writes down where each parameter is, a layer at a time: `linear` knows that a weight has a bias, `norm`
// that a gain may have one. Lists more than a spec may need (a bias that is switched off); `take` keeps what
// it does need.
#pragma once

#include <string>
#include <utility>

#include "checkpoint/architecture.h"
#include "parts/parameters.h"

namespace rankscope {

class WeightList {
 public:
  void add(const std::string& parameter, Source source) {
    map_.insert_or_assign(parameter, std::move(source));
  }

  /// "attn.W_Q" and "attn.b_Q" of `part` from `module`.weight and .bias; `how` says how they are stored.
  void linear(const std::string& part, const std::string& letter, const std::string& module,
              Source how = {}) {
    how.tensor = module + ".weight";
    add(part + "W_" + letter, how);
    how.tensor = module + ".bias";
    how.transpose = false;
    how.stored_shape.clear();
    add(part + "b_" + letter, how);
  }

  /// `plus` is added to the gain: 1 where its difference from one is stored (Gemma).
  void norm(const std::string& parameter, const std::string& module, bool outside_base = false,
            double plus = 0) {
    add(parameter + ".w", {.tensor = module + ".weight", .outside_base = outside_base, .plus = plus});
    add(parameter + ".b", {.tensor = module + ".bias", .outside_base = outside_base});
  }

  /// The vocabulary matrix: the embedding's tensor where the two are tied, its own otherwise.
  void vocabulary(const ModelSpec& spec, const std::string& embedding, const std::string& own) {
    if (spec.output.tied) {
      add("unembed.W_U", {.tensor = embedding});
    } else {
      add("unembed.W_U", {.tensor = own, .outside_base = true});
    }
  }

  WeightMap take(const ModelSpec& spec) {
    WeightMap needed;
    for (const Parameter& p : parameters(spec))
      if (const auto it = map_.find(p.name); it != map_.end()) needed.insert(map_.extract(it));
    return needed;
  }

 private:
  WeightMap map_;
};

}  // namespace rankscope
