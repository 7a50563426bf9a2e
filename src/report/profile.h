// Which rows of a table the reader of a terminal wants first: the main numbers of each layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"

namespace rankscope {

/// The main numbers at one place of the network. What was not measured is NaN.
struct LayerNumbers {
  std::string label;              // "embed", "0", "1", ..., "final"
  double residual = kNone;        // residual_fro_rel_trimmed of the content tokens
  double rank = kNone;            // effective_rank_rel
  double cosine = kNone;          // token_cosine
  double entropy = kNone;         // attention_entropy, mean over heads
  double sinks = kNone;           // share of the heads whose sink_margin the verdict would count
  double massive = kNone;         // massive_ratio of the residual stream
  double attention_rank = kNone;  // numerical_rank of its matrices, mean over heads, where there is a
  double rank_ceiling = kNone;    // rank_ceiling
};

struct VariantProfile {
  std::string variant;
  std::string stream;        // of a network that has several
  double output_kl = kNone;  // or output_error, where in_nats is false
  bool in_nats = true;
  std::vector<LayerNumbers> layers;
  bool pre_norm = false;  // tokens are read where attention sees them: the normalised block input
  bool content = false;   // tokens are the content tokens; all of them where a sample has no others
  int64_t samples = 0;
};

/// One profile per stream and variant, in the order in which the table first names them. `sink_margin`: the
/// verdict's threshold, so that the column counts what the sentence counts.
std::vector<VariantProfile> profiles(const ResultTable& table, double sink_margin);

}  // namespace rankscope
