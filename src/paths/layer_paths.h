// What a path may do in each layer of a network: for counting, on either side of the library.
#pragma once

#include <vector>

#include "spec/model.h"
#include "theory/path_counts.h"

namespace rankscope {

/// Heads and skips that were taken out are no ways through.
inline std::vector<LayerPaths> layer_paths(const ModelSpec& spec) {
  std::vector<LayerPaths> out;
  for (const BlockSpec& block : spec.blocks) {
    const AttentionSpec& a = block.attention();
    out.push_back({a.heads - static_cast<int64_t>(a.heads_off.size()), block.attention_branch()->skip});
  }
  return out;
}

}  // namespace rankscope
