// An architecture is one file of checkpoint/arch/: it reads config.json into a ModelSpec and says where in
// the checkpoint each parameter is. It only describes; the loader does the work. Knows nothing of torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "spec/model.h"

namespace rankscope {

/// Where one parameter is stored. The stored tensor is read as a matrix (Checkpoint::Place says which),
/// transposed if asked, and rows [first_row, first_row + rows) of that are the parameter (rows from the
/// parameter's own shape).
struct Source {
  std::string tensor = {};  // Hugging Face name, without the model's prefix
  bool transpose = false;   // stored as [in, out] (GPT-2's Conv1D, XLNet's projections)
  int64_t first_row = 0;    // fused QKV: where this one starts, in rows after transposition
  int64_t stored_rows =
      0;  // fused: how many rows the stored tensor has after transposition; 0: the parameter's own
  bool outside_base = false;  // a head's tensor: the base model's prefix does not apply
  std::string other = {};  // the same numbers under another name, where some versions of the library put them
  std::vector<int64_t> stored_shape =
      {};  // the exact shape in the file; empty: the parameter's own, transposed
  /// The stored rows come in this many equal groups, and the parameter has rows [first_row, ..) of each:
  /// fused projections that lie head by head.
  int64_t groups = 1;
  std::vector<int64_t> order = {};     // which rows of a group, where they do not follow one another
  std::vector<std::string> more = {};  // further tensors like the first, whose rows follow its own
  int64_t matrix = -1;  // >= 0: the stored tensor is a stack of matrices (or vectors), and this one is meant
  double plus = 0;      // added to every number: a gain that is stored as its difference from one
  std::vector<Source> instead = {};  // where the same numbers are in folders that were written differently
};

/// Parameter name (parts/parameters.h) -> its place.
using WeightMap = std::map<std::string, Source>;

struct Architecture {
  std::string_view name;                      // "bert": also the file's name
  std::string_view summary;                   // "BERT, MiniLM: post-norm encoder"
  std::vector<std::string_view> model_types;  // config.json's model_type values it serves
  std::string_view prefix;  // "bert.": what a model with a head puts before the base's names; may be absent
  std::string_view anchor;  // a tensor of the base every checkpoint has: tells whether the prefix is there
  ModelSpec (*spec)(const JsonObject& config);
  WeightMap (*weights)(const ModelSpec& spec);
};

/// Every architecture, alphabetically (generated from the file names).
const std::vector<const Architecture*>& architectures();

/// config.json's model_type; where there is none, the one its "architectures" imply ("GPT2LMHeadModel":
/// "gpt2").
std::string model_type_of(const JsonObject& config);

/// The one that serves the config's model type; an error names the known ones and, of the whole `json`, the
/// nearest of them and what it does not know.
const Architecture& architecture_for(const JsonObject& config, const Json* json = nullptr);

/// The text of a config.json to a spec, without any file; `place` is named in errors. The language-model head
/// is the one the config promises: only the tensors can tell whether it is there.
ModelSpec spec_from_config(std::string_view text, const std::string& place);

}  // namespace rankscope
