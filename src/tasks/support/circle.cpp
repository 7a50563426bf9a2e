#include "tasks/support/circle.h"

#include <cmath>
#include <numbers>

namespace rankscope {

TokenSet circle_walk(int64_t points, bool as_published) {
  const int64_t apart = points / 2 - (as_published ? 1 : 0);
  TokenSet out{.tokens = 2};
  const auto add = [&](std::vector<double>& to, int64_t place) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(place) / static_cast<double>(points);
    to.insert(to.end(), {kCircleRadius * std::cos(angle), kCircleRadius * std::sin(angle)});
  };
  for (int64_t i = 0; i < apart; ++i)
    for (const int64_t place : {i, i + apart}) {
      add(out.points, place);
      add(out.targets, place + 1);
    }
  return out;
}

double circle_step(int64_t points) {
  return 2 * kCircleRadius * std::sin(std::numbers::pi / static_cast<double>(points));
}

}  // namespace rankscope
