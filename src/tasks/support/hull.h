#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rankscope {

/// 1 for the corners of the convex hull of the points (x0, y0, x1, y1, ...), 0 for the others. A point on an
/// edge is no corner; of equal points the first one counts.
std::vector<int64_t> hull_corners(std::span<const double> points);

}  // namespace rankscope
