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

/// How scores of experts become shares.
struct Sharing {
  int64_t active = 0;             // how many a token takes
  bool sigmoid = false;           // shares are sigmoids of scores; otherwise the softmax
  bool normed = true;             // the shares of those taken are made to sum to one
  int64_t groups = 1;             // experts come in groups,
  int64_t active_groups = 1;      // and a token chooses so many of these first, by their two best
  std::string correction = {};    // a parameter that is added for the choice and not for the share
  double scale = 1.0;             // multiplies the shares
  std::vector<int64_t> off = {};  // taken out: their shares are zero, the others keep theirs
};

struct Operation {
  enum class Kind {
    linear,      // from W^T * scale + b
    activation,  // act(from)
    multiply,    // from * second, number by number; frozen, `second` is held
    sum,         // from + second; frozen, `second` is held
    norm,        // `norm` over each of `groups` equal parts of `from`, gains <W>.w and <W>.b
    share,       // how much a token takes of each expert that `from` scores
    experts,     // expert e of `from`, times number e of `second`, added up: only those that are taken run;
                 // `third`, where there is one: the number that multiplies the one all tokens take
    beside,      // in every one of `heads` groups, `from` (shared by all) and then its part of `second`
    repeat,      // every `chunk` numbers of `from`, `groups` times side by side: one a head becomes one a
                 // channel, a head that several share one of each
    convolve,    // channel by channel, <W> [width, taps] over the token and those before it in its sample;
                 // the last tap is the token's own
    gates,       // of each head sigmoid(`from`), what is written into a state, and beside it
                 // exp(-exp(<W>_rate) softplus(`second` + <W>_bias)), what is kept of it
    attend,  // heads of queries `from`, keys `second`, values `third`: pattern times values. `fourth`, where
             // there is one: numbers of each key that the pattern reads beside it
  } kind;
  Value from = kInput, second = -1, third = -1, fourth = -1;
  std::string W = {}, b = {};  // linear: "attn.W_Q"; b empty: no bias
  int64_t width = 0;           // of the result
  double scale = 1.0;          // linear
  Activation activation = Activation::identity;
  Activation other = Activation::identity;  // experts: of what the activated gate multiplies
  bool gated = false, biased = false;       // experts
  int64_t always = 0;     // experts: width of one more, "shared", that every token takes whole; 0: none
  std::string site = {};  // its name for those who look: "attn.hook_q", "mlp.hook_pre"
  Sharing sharing = {};   // share
  NormSpec norm = {};     // norm
  int64_t groups = 1;     // norm, repeat
  int64_t chunk = 1;      // repeat
  int64_t taps = 0;       // convolve
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
  /// Whether queries, keys and values are one map each of the tokens, norms on queries and keys aside.
  bool maps_tokens() const;
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
/// What the part goes by: its default where the spec does not say it.
double option_of(const PartSpec& part, std::string_view name);

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
  /// The norm that stands before the part or behind it.
  const NormSpec& branch_norm() const { return branch_.before.there() ? branch_.before : branch_.behind; }

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
  Value sum(Value carried, Value held);
  Value repeat(Value from, int64_t times, int64_t chunk = 1);
  /// <name> [width, taps], over a token and the taps - 1 before it; heads lie along its channels.
  Value convolve(std::string_view name, Value from, int64_t taps, bool per_kv_head = false);
  /// What each head writes into its state and keeps of it, from a number each; parameters <name>_rate and
  /// <name>_bias.
  Value gates(std::string_view name, Value write, Value keep, std::string_view site = {});
  /// `norm` over each of `groups` parts of `from`; gains <name>.w, <name>.b as long as a part, or as `from`
  /// where every part, a head, has its own.
  Value norm(std::string_view name, Value from, const NormSpec& norm, int64_t groups = 1,
             bool own_gains = false, bool per_kv_head = false);
  Value attend(Value q, Value k, Value v, Value gates = -1);
  /// How much a token takes of each of the experts that `scores` are about, zero for those it does not take.
  Value share(Value scores, const Sharing& sharing);
  struct Experts {
    bool gated = true, biased = false;
    Activation other = Activation::identity;  // on what the activated gate multiplies
    int64_t always = 0;                       // width of one that every token takes whole; 0: none
    Value always_share = -1;                  // what multiplies that one, a number a token; none: 1
  };
  /// MLPs "experts.<e>", as many as there are shares, of the words of the branch.
  Value experts(Value from, Value shares, const Experts& how);
  /// A width that all heads share, beside a width of their own.
  Value beside(Value shared, Value own, int64_t heads);
  /// Gives a value a name for those who look, [tokens, heads, ..] where there are heads.
  void show(Value value, std::string_view site, int64_t heads = 0);
  /// A bias that no linear map has; its name within the block.
  std::string bias_parameter(std::string_view name, int64_t size);
  /// A parameter that no linear map has.
  void parameter(std::string_view name, std::vector<int64_t> shape, int head_axis = -1, double spread = 0);

  Program take();

 private:
  Value add(Operation operation);
  const BranchSpec& branch_;
  int64_t width_, other_width_;
  Program program_;
};

}  // namespace rankscope
