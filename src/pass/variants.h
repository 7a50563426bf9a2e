// Which networks a scan runs: the full one, and the same with parts out or ranks cut.
#pragma once

#include <string>
#include <vector>

#include "pass/pass.h"

namespace rankscope {

/// "full", then one per --off ("-skip+mlp") and --rank ("rank:qk=8"; qk=auto is 1, 2, 4, ... below the head's
/// width). A part that the model does not have leaves a variant that compares equal to full; a rank that cuts
/// nothing is a usage error.
std::vector<Variant> make_variants(const ScanRequest& request, const ModelSpec& spec);

/// Whether the words of a --rank ask for a curve (importance/rank_curves.h) instead of a variant: several
/// ranks, or those of keys and values together.
bool is_rank_curve(const std::string& words);

/// "0-5,11" to one flag per layer; empty is all. A layer the model does not have is a usage error.
std::vector<bool> parse_layers(const std::string& text, int64_t depth,
                               const std::string& option = "--layers");

/// The lenses named, or all that do not wait to be asked for; an unknown one is answered with the nearest.
std::vector<const Lens*> choose_lenses(const std::vector<std::string>& names);

}  // namespace rankscope
