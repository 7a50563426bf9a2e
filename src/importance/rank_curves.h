// What the output loses when maps are cut to smaller and smaller ranks: --rank qk=1,2,4,8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "importance/estimates.h"
#include "importance/evaluator.h"
#include "importance/filing.h"

namespace rankscope {

/// One word of --rank with several ranks: "qk=1,2,4". `map` is qk, ov or kv.
struct RankCurve {
  std::string map;
  std::vector<int64_t> ranks;  // ascending
};
/// The curve that the words name; an error where they name none. One rank of qk or ov is a variant of the
/// scan instead (pass/variants.h), of kv a curve of one point.
RankCurve parse_curve(const std::string& words);

/// The widest rank of that map in a block, and the block with it cut; nothing is cut at that width.
int64_t full_rank(const ModelSpec& spec, const BlockSpec& block, const std::string& map);
BlockEdit cut_to(const ModelSpec& spec, const BlockSpec& block, const std::string& map, int64_t rank);

/// Rows of a curve: all layers at once, one layer at a time, and single heads by the estimate where gradients
/// are given; and the smallest rank whose cost stays below `epsilon` by two standard errors.
void add_rank_curve(const RankCurve& curve, Evaluator& evaluator, const WriteGradients* gradients,
                    double epsilon, Filing& filing);

}  // namespace rankscope
