// The verdict on a network of several streams: each is judged by its own rows.
#pragma once

#include <vector>

#include "verdict/verdict.h"

namespace rankscope {

/// `judge` for a network of one stream. Of several, the sentences about each stream begin with its name; of
/// the attention to another stream there are those about attention alone.
std::vector<Finding> judge_streams(const ResultTable& table, const ModelSpec& spec,
                                   const Thresholds& thresholds, const Measured& measured);

}  // namespace rankscope
