// An attention variant is one file of attention/: it turns queries and keys into attention patterns, and owns
// what it adds to them (rotary phases, relative scores).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_fwd.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// S samples whose queries have one length and whose keys have one length.
struct AttentionInput {
  const AttentionSpec& spec;
  const Weights& weights;             // the block's, for variants with parameters of their own
  const std::string& name;            // of the branch: its parameters are "attn.W_R", ...
  const at::Tensor& q;                // [S, T, H, d_qk]
  const at::Tensor& k;                // [S, T', KV, d_qk]
  const at::Tensor& positions;        // [S, T] int64, of the queries
  const at::Tensor& key_positions;    // [S, T'] int64
  const at::Tensor& types;            // [S, T] int64, undefined when the input came without
  const at::Tensor* gates = nullptr;  // [S, T', H, g]: what the part says of each key beside it
};

/// Patterns on demand: rows of one tile at a time, so that long contexts never hold a whole matrix.
class PreparedAttention {
 public:
  virtual ~PreparedAttention() = default;
  /// Rows [first_row, first_row + rows) of every head's pattern for samples [first, first + count):
  /// [count, H, rows, T']. Differentiable. `scores`, where given, takes what the pattern was made of, of the
  /// same shape: scaled, -inf where a key is hidden. A variant that has none leaves it alone.
  virtual at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                             at::Tensor* scores = nullptr) = 0;
};

/// An option behind the variant's name ("fastmax:p=2", spec/variant_text.h): one of some words, or a number.
struct VariantOption {
  std::string_view name, otherwise;
  std::vector<std::string_view> words = {};  // empty: a number between low and high
  double low = 0, high = 0;
  std::string_view meaning = {};
  bool whole = false;  // a whole number
};

struct AttentionVariant {
  std::string_view name;
  std::string_view summary;
  bool row_stochastic;   // every row of a pattern sums to one; the contract test holds it to this
  bool only_tokens;      // without a mask and positions the pattern is softmax(scale Q K^T)
  bool own_tokens_only;  // cannot look at another stream than its own
  bool has_scores;       // the pattern is made of scores, larger for more attention
  std::unique_ptr<PreparedAttention> (*prepare)(const AttentionInput& input);
  bool shares = true;  // no entry is below zero, no row sums to more than one: how much each key gives
  bool only_causal =
      false;  // a state that runs forward: there is no form without a causal mask, nor with a window
  bool may_be_causal = true;  // false: a row depends on later queries, and a mask would not hide them
  std::vector<VariantOption> options = {};
  /// The largest rank a pattern of n x n can have for the widths of the spec, in words and as a number; none:
  /// n.
  std::string_view rank_law = {};
  int64_t (*rank_ceiling)(const AttentionSpec& spec, int64_t tokens) = nullptr;
  /// What the patterns carry without the patterns, at a cost that grows with the number of tokens alone: P V,
  /// [S * H, T, d_v], for v [S * H, T, d_v] of the queries' own stream, whose positions ascend.
  /// Differentiable. Undefined where this input has no such form, or none that is cheaper; null: there is
  /// none at all.
  at::Tensor (*output)(const AttentionInput& input, const at::Tensor& v) = nullptr;
};

/// Every variant, alphabetically (generated from the file names).
const std::vector<const AttentionVariant*>& attention_variants();
/// That of "name" or "name:option=value,...", whose options are checked.
const AttentionVariant& attention_variant(std::string_view text);
/// What the spec says of an option, or what the variant does otherwise.
double number_option(const AttentionSpec& spec, std::string_view name);
std::string word_option(const AttentionSpec& spec, std::string_view name);

/// Whether nothing but the tokens decides a pattern, and by scores that are bilinear in them: no mask, no
/// positions, no norm on queries and keys, no cap, so that the pattern is softmax(Q K^T).
bool only_tokens_decide(const AttentionSpec& spec);

/// Refuses a causal mask, for variants whose rows look at later queries.
void refuse_causal(const AttentionSpec& spec);

/// Which keys of rows [first_row, first_row + rows) are hidden, [rows, keys]; undefined where all are seen.
at::Tensor hidden_keys(const AttentionSpec& spec, int64_t first_row, int64_t rows, int64_t keys,
                       const at::Tensor& like);

/// What the variants share: heads in front ([S*H, T, d], KV heads repeated for their query heads), and a
/// softmax over the keys a query may see (`masked` takes the scores it was made of).
at::Tensor heads_first(const at::Tensor& x, int64_t heads);
/// `sinks` [heads], where given, are scores of a key without a value, which takes its part of every row.
at::Tensor masked_softmax(at::Tensor scores, const AttentionSpec& spec, int64_t first_row,
                          at::Tensor* masked = nullptr, const at::Tensor& sinks = {});

/// Whether every row of a pattern sums to one.
bool rows_sum_to_one(const AttentionSpec& spec);

}  // namespace rankscope
