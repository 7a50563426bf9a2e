// An architecture is one file of checkpoint/arch/: it reads config.json into a ModelSpec and says where in the
// checkpoint each parameter is. It only describes; the loader does the work. Knows nothing of torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/spec.h"

namespace rankscope {

/// Where one parameter is stored. The stored tensor is flattened to [first dimension, rest], transposed if asked,
/// and rows [first_row, first_row + rows) of that are the parameter (rows from the parameter's own shape).
struct Source {
  std::string tensor;         // Hugging Face name, without the model's prefix
  bool transpose = false;     // stored as [in, out] (GPT-2's Conv1D, XLNet's projections)
  int64_t first_row = 0;      // fused QKV: where this one starts, in rows after transposition
  int64_t stored_rows = 0;    // fused: how many rows the stored tensor has after transposition; 0: the parameter's own
  bool outside_base = false;  // a head's tensor: the base model's prefix does not apply
};

/// Parameter name (model/parameters.h) -> its place.
using WeightMap = std::map<std::string, Source>;

struct Architecture {
  std::string_view name;     // "bert": also the file's name
  std::string_view summary;  // "BERT, MiniLM: post-norm encoder"
  std::vector<std::string_view> model_types;  // config.json's model_type values it serves
  std::string_view prefix;   // "bert.": what a model with a head puts before the base's names; may be absent
  std::string_view anchor;   // a tensor of the base every checkpoint has: tells whether the prefix is there
  ModelSpec (*spec)(const JsonObject& config);
  WeightMap (*weights)(const ModelSpec& spec);
};

/// Every architecture, alphabetically (generated from the file names).
const std::vector<const Architecture*>& architectures();

/// The one that serves config.json's model_type; an error names the known ones.
const Architecture& architecture_for(const JsonObject& config);

}  // namespace rankscope
