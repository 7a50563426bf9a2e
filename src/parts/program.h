// A part is one file of parts/: a short program over a few operations, from which everything else follows.
// Whoever runs networks interprets the program: forward, with attention and activations held still, in split
// arithmetic, or counting. Whoever wants the parameters reads them off it. Knows nothing of torch.
//
// Values are numbered: 0 is what the part reads, 1 the stream its keys and values come from (the same value
// unless the branch reads another stream), and each operation makes the next one. The last one is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model.h"
#include "spec/parameter.h"

namespace rankscope {

using Value = int;
constexpr Value kInput = 0, kOther = 1, kFirstMade = 2;

struct Operation {
  enum class Kind {
    linear,      // from W^T * scale + b
    activation,  // act(from)
    multiply,    // from * second, number by number; frozen, `second` is held
    share,       // softmax over the `active` largest scores of `from`, 0 for the rest; each repeated
    attend,      // heads of queries `from`, keys `second`, values `third`: pattern times values
  } kind;
  Value from = kInput, second = -1, third = -1;
  std::string W = {}, b = {};  // linear: "attn.W_Q"; b empty: no bias
  int64_t width = 0;           // of the result
  double scale = 1.0;          // linear
  Activation activation = Activation::identity;
  std::string site = {};  // its name for those who look: "attn.hook_q", "mlp.hook_pre"
  int64_t active = 0;     // share
  int64_t heads = 0;      // it is shown as [tokens, heads, ..]; 0: as [tokens, width]
};

struct Program {
  std::vector<Operation> operations;
  std::vector<Parameter> parameters;  // named within the block: "attn.W_Q"
  int64_t width = 0;                  // of what it writes

  const Operation& made(Value value) const { return operations[static_cast<size_t>(value - kFirstMade)]; }
  const Operation* attend() const;  // nullptr: tokens do not see each other in this part
  /// Whether the heads' output goes straight into the output map, nothing in between.
  bool writes_heads() const;
};

struct PartOption {
  std::string_view name;
  double otherwise = 0, low = 0, high = 0;  // whole numbers
  std::string_view meaning;
};

/// A value of the program that can be looked at, beside those every part of its kind has (model/sites.h).
struct PartSite {
  std::string_view name;     // "attn.hook_gate"
  std::string_view meaning;  // one line
};

class PartBuilder;

struct Part {
  std::string_view name;
  std::string_view summary;
  enum class Kind { attention, mlp } kind;
  std::vector<PartOption> options = {};
  std::vector<PartSite> sites = {};
  std::string_view variant = {};  // attention: the only file of attention/ it goes with; empty: any
  /// Trials of a stack may differ in heads and score scale: the shapes of the parameters do not.
  bool heads_are_a_reshape = false;
  void (*build)(PartBuilder& builder);
};

/// Every part, alphabetically (generated from the file names).
const std::vector<const Part*>& parts();
const Part& part_named(std::string_view name);

/// Refuses an option that the part does not declare, a value out of its range, words of the other kind.
void check_part(const BranchSpec& branch);

/// What the branch computes on tokens of `width`; `other_width` is that of the stream it reads.
Program program_of(const BranchSpec& branch, int64_t width, int64_t other_width = 0);

/// What a part's file is written with.
class PartBuilder {
 public:
  PartBuilder(const BranchSpec& branch, int64_t width, int64_t other_width);

  const AttentionSpec& attention() const { return *branch_.attention(); }
  const MlpSpec& mlp() const { return *branch_.mlp(); }
  int64_t width() const { return width_; }  // of the stream
  double option(std::string_view name) const;
  int64_t width_of(Value value) const;

  struct Linear {
    bool bias = false;
    double spread = 0, bias_spread = 0;  // how torch starts it
    double scale = 1;
    bool carries_values = false;
    int head_axis = -1;
    bool per_kv_head = false;
    std::string_view site = {};  // within the branch: "hook_q"
  };
  /// W_<letter> [out, in] and, where asked for, b_<letter>.
  Value linear(std::string_view letter, Value from, int64_t out, const Linear& how);
  Value activation(Value from, Activation activation, std::string_view site = {});
  Value multiply(Value carried, Value held, std::string_view site = {});
  Value attend(Value q, Value k, Value v);
  /// How much a token takes of each of the choices that `scores` are about: the softmax over the `active`
  /// largest, zero for the others, each number repeated `times`. To be held by a multiply.
  Value share(Value scores, int64_t active, int64_t times);
  /// Gives a value a name for those who look, [tokens, heads, ..] where there are heads.
  void show(Value value, std::string_view site, int64_t heads = 0);
  /// A parameter that no linear map has.
  void parameter(std::string_view name, std::vector<int64_t> shape, int head_axis = -1);

  Program take();

 private:
  Value add(Operation operation);
  const BranchSpec& branch_;
  int64_t width_, other_width_;
  Program program_;
};

}  // namespace rankscope
