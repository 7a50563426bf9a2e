// Small networks that differ in nothing but how they attend: the kinds of attention by one word each, the
// keys that say what is trained on what, and the trial they describe.
#pragma once

#include <string>
#include <vector>

#include "studies/config.h"
#include "tasks/token_task.h"
#include "train/protocol.h"

namespace rankscope {

/// What a word of the key `kind` stands for.
struct AttentionKind {
  std::string_view name;
  std::string_view part = "attention";   // file of parts/
  std::string_view variant = "softmax";  // file of attention/
  std::string_view option = {};          // of the part, set to `value`
  double value = 0;
  bool sinks = false;  // a learned score per head for a key without a value
};

const std::vector<AttentionKind>& attention_kinds();

/// "fastmax:p=3": the kind, and the variant with its options, which are checked.
struct ChosenKind {
  const AttentionKind* kind;
  std::string variant;
};
ChosenKind chosen_kind(const std::string& text);
/// "softmax/linear/softmax": one for each of so many layers; one alone is that of all.
std::vector<ChosenKind> chosen_kinds(const std::string& text, int64_t layers);

std::vector<Key> kind_keys();

/// A trial without its set, which is drawn by `token_data`; lookups have none.
TrialSpec kind_trial(const Config& config);
bool draws_points(const Config& config);
TokenData token_data(const Config& config);

/// The network with the dose of sink that the trial asks for, or one of its controls (attention/shifted_sink,
/// shifted_control).
ModelSpec with_sink_shift(ModelSpec network, const Config& config);
/// The network with its skips taken out, norms and all else as they are.
ModelSpec without_skips(ModelSpec network);

}  // namespace rankscope
