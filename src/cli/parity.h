// Agreement with another implementation, as `verify` prints it and a scan's manifest keeps it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "scan/verify.h"

namespace rankscope {

constexpr double kParityTolerance = 2e-5;  // largest error over largest value

bool passes(const LayerError& error, double tolerance);  // NaN does not

bool all_pass(const std::vector<LayerError>& errors, double tolerance);

/// The layer that is furthest off; the first that is not a number, if one is. There is at least one.
const LayerError& worst_of(const std::vector<LayerError>& errors);

/// Every layer with its errors.
Json parity_list(const std::vector<LayerError>& errors, double tolerance);

/// What the manifest says: {"checked": true, "against", "agrees", "worst", "at", "tolerance", "layers"}.
Json parity_of(const std::vector<LayerError>& errors, double tolerance, const std::string& against);
/// ... or that nobody looked, and how to.
Json parity_not_checked();

}  // namespace rankscope
