// One parameter of a network: its name, its shape, and what its numbers are at the start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope {

struct Parameter {
  std::string name;            // "embed.W_E", "blocks.3.attn.W_Q", "ln_final.w", "unembed.W_U"
  std::vector<int64_t> shape;  // one or two dimensions
  enum class Role { matrix, bias, gain } role = Role::matrix;
  double spread = 0;            // InitKind::torch: uniform in +-spread
  bool carries_values = false;  // W_V and W_O, which InitKind::mixed draws from another law
  /// Which axis the heads lie along, one behind another; -1: the parameter belongs to no head.
  int head_axis = -1;
  bool per_kv_head = false;  // along that axis: KV heads, not query heads
  bool on_demand = false;    // read when it is used: one of many, of which few are (an expert)
};

inline int64_t element_count(const Parameter& p) {
  int64_t n = 1;
  for (const int64_t size : p.shape) n *= size;
  return n;
}

}  // namespace rankscope
