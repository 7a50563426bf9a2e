// --threshold NAME=X: by its own name, or by the name of the number that it judges.
#pragma once

#include <string>

#include "verdict/verdict.h"

namespace rankscope {

/// "collapse=0.05", and "residual=0.05" for the same: names that tables and sentences print are names here.
/// Gives the threshold's own name. Throws where nothing of that name decides a sentence, or where it is no
/// number, or one below 0.
std::string set_threshold(Thresholds& thresholds, const std::string& text);

}  // namespace rankscope
