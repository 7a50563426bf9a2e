// Activations on their way through the network, and the variants that share them.
#pragma once

#include <algorithm>
#include <vector>

#include "base/tensor_fwd.h"

namespace rankscope {

/// What the variants that agree so far have in common.
struct State {
  std::vector<size_t> variants;
  std::vector<at::Tensor> x;  // one per batch
};

/// Splits variants into groups that agree in `key`, in order of first appearance.
template <class Key>
std::vector<std::vector<size_t>> group_by(const std::vector<size_t>& variants, Key key) {
  std::vector<std::vector<size_t>> groups;
  for (const size_t v : variants) {
    const auto it =
        std::find_if(groups.begin(), groups.end(), [&](auto& g) { return key(g.front()) == key(v); });
    if (it == groups.end())
      groups.push_back({v});
    else
      it->push_back(v);
  }
  return groups;
}

}  // namespace rankscope
