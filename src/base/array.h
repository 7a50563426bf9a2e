// A small dense array that belongs to a result: a spectrum, a pooled attention map. Kept as safetensors beside the
// tables, and drawn in the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope {

struct NamedArray {
  std::string name;  // site and what of it: "blocks.3.attn.hook_pattern.spectrum"
  std::vector<int64_t> shape;
  std::vector<float> values;  // row by row
};

}  // namespace rankscope
