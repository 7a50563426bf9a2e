// The networks that studies train: a post- or pre-norm encoder with every knob free, and one attention layer
// with free QK rank and full value map. A network is a value; its parameters lie in one flat buffer a trial.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "model/parameters.h"
#include "model/spec.h"
#include "tasks/task.h"

namespace rankscope {

enum class Positions { none, additive, concatenated };

struct NetworkSpec {
  bool encoder = true;  // false: one layer, separate queries read keys, sum_h VO_h X softmax(...)
  int64_t token_width = 0, answer_width = 0, tokens = 0;  // from the task
  int64_t layers = 1;
  int64_t modules = 1;  // W: independent multi-head modules whose outputs are averaged
  int64_t heads = 1;    // a module's
  int64_t rank = 0;     // of a head's QK map
  int64_t v_rank = 0;   // of a head's OV map
  double score_scale = 1.0;
  bool hard = false;
  int64_t mlp = 0;  // hidden width, 0: none
  NormKind norm = NormKind::unit;
  NormPlace place = NormPlace::post;
  Positions positions = Positions::none;
  int64_t position_width = 0;  // concatenated: added to the token's width
  int64_t embed = 0;           // > 0: a learned map into this width, and one out of it
  bool bias = true;
  bool same_init = false;  // every layer starts as a copy of the first

  int64_t width() const;  // of the residual stream
  int64_t total_heads() const { return modules * heads; }
  bool operator==(const NetworkSpec&) const = default;
};

/// Refuses what cannot be: ranks above the width, widths that do not match.
void check(const NetworkSpec& spec);

/// One parameter of the flat buffer.
struct Slot {
  Parameter parameter;
  int64_t offset = 0;
  enum class Init { zero, one, uniform } init = Init::zero;
  double spread = 0;  // uniform in (-spread, spread)
};

/// The flat buffer's layout, in the order of the forward pass; Q, K and V side by side.
class Layout {
 public:
  /// Every parameter starts at a multiple of `alignment`, but for K and V, which follow what is in front.
  explicit Layout(const NetworkSpec& spec, int64_t alignment = 1);
  const std::vector<Slot>& slots() const { return slots_; }
  int64_t size() const { return size_; }

 private:
  std::vector<Slot> slots_;
  int64_t size_ = 0;
};

/// The starting point of a trial: a function of the seed alone.
std::vector<float> initial_parameters(const NetworkSpec& spec, uint64_t seed);

/// Floating-point operations of one forward pass for one sequence, 2 per multiply-add; softmax and norms not
/// counted.
double forward_flops(const NetworkSpec& spec, const TaskSpec& task);

}  // namespace rankscope
