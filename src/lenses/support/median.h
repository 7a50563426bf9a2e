// "More than 20 times the median": the one rule for what counts as massive, among tokens and among channels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rankscope {

constexpr double kMassive = 20.0;

/// 1 where a value exceeds kMassive times the median of those that are not zero. (Where more than half are
/// zero the plain median is zero and would call everything else massive.)
std::vector<uint8_t> above_median(std::span<const double> values);

}  // namespace rankscope
