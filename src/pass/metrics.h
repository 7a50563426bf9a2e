// What every metric of a result table is: those of the lenses, in their words, and those that no lens makes.
#pragma once

#include <string_view>
#include <vector>

#include "lenses/lens.h"

namespace rankscope {

/// "sigma_12" is the metric "sigma_k". nullptr for a name that nobody describes. Lenses of tokens and of
/// attention share a few names (effective_rank): the lens that reads the site decides, and without a site the
/// first one.
const MetricInfo* metric_info(std::string_view name, std::string_view site = {});

/// Those that no lens makes: of losses, ablations, plans, collapse, paths, operator and of compared outputs.
const std::vector<MetricInfo>& metrics_without_lens();

}  // namespace rankscope
