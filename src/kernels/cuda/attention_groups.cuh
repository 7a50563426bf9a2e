// Which trials of a stack go into one launch.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace rankscope::cuda {

/// Calls use(group) for each number of heads among the trials.
template <class Use>
void for_each_group(const SmallAttention& a, Use use) {
  for (int64_t first = 0; first < a.trials; ++first) {
    const int32_t heads = a.heads[first];
    bool seen = false;
    for (int64_t t = 0; t < first; ++t) seen = seen || a.heads[t] == heads;
    if (seen) continue;
    Group g{};
    g.sequences = static_cast<int32_t>(a.sequences);
    g.queries = static_cast<int32_t>(a.queries);
    g.keys = static_cast<int32_t>(a.keys);
    g.heads = heads;
    g.width_qk = static_cast<int32_t>(a.width_qk / heads);
    g.width_v = static_cast<int32_t>(a.shared_values ? a.width_v : a.width_v / heads);
    g.shared_values = a.shared_values;
    for (int64_t t = first; t < a.trials; ++t) {
      if (a.heads[t] != heads) continue;
      g.trial[g.members] = static_cast<int32_t>(t);
      g.scale[g.members] = a.scale[t];
      ++g.members;
    }
    use(g);
  }
}

}  // namespace rankscope::cuda
