// The places of a forward pass that can be looked at, by name: TransformerLens's names where it has them,
// ours where it has none. The pass hands out what an observer asks for by name, and this is the one list of
// names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model.h"

namespace rankscope {

/// How a site is handed out.
enum class SiteForm {
  whole,     // one tensor a batch, its tokens packed one behind another: [N, ...]
  tiles,     // matrices of queries and keys, a few rows at a time: [S, H, R, keys]
  factored,  // a product that is never formed: its factors
  experts,   // what one expert after another writes into the tokens that take it: [n, d]
  weights    // a block's weights
};
std::string_view to_string(SiteForm);

/// Who shows a site.
enum class ShownBy {
  input,   // the first step of a block: what the block before it, or the embedding, left
  step,    // a step around a part; it can show it again from the state it left
  part,    // a part while it runs, and nobody afterwards
  output,  // whoever runs the block: what it gave
  pass     // nobody inside a block: weights, and what lies behind the last block
};

struct SiteInfo {
  std::string_view name;  // within a block: "attn.hook_pattern"; outside: "ln_final.hook_normalized"
  SiteForm form;
  ShownBy shown_by;
  std::string_view meaning;
  std::function<std::string(const ModelSpec&, const BlockSpec&)> shape;  // in words
  std::function<bool(const ModelSpec&, const BlockSpec&)> present;       // in this model, in this block
  bool in_block = true;
  std::string_view made_of = {};  // factored: the site whose tensor is its first factor
  bool finite = true;             // false: Inf is no fault there
  std::string_view like = {};     // lenses that read that site read this one, too
  bool of_cross = false;          // of the branch "cross", which looks at another stream
};

/// Every site, in the order of the pass; those that only some parts have (parts/program.h) come last.
const std::vector<SiteInfo>& sites();

/// The site of that name, "blocks.3." in front or not; an Error suggests the nearest where there is none.
const SiteInfo& site_named(std::string_view name);

/// The branch "cross" of a block, which looks at another stream; nullptr where there is none.
const BranchSpec* cross_branch(const BlockSpec& block);

/// A block of that branch alone, under the names of a block's own attention ("attn", "ln1"): for whoever
/// knows attention by those.
BlockSpec attention_alone(const BlockSpec& block, std::string_view branch);

/// "attn.hook_pattern" of "blocks.3.attn.hook_pattern"; other names as they are.
std::string_view within_block(std::string_view name);

/// Where a tile lies: its samples and rows begin here, and the whole matrices have `queries` rows. Of a site
/// of experts first_sample counts those.
struct TilePlace {
  int64_t first_sample = 0, first_row = 0, queries = 0;
};

}  // namespace rankscope
