#include "tasks/support/hull.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rankscope {
namespace {

// Positive where a, b, c turn left.
double turn(std::span<const double> p, size_t a, size_t b, size_t c) {
  return (p[2 * b] - p[2 * a]) * (p[2 * c + 1] - p[2 * a + 1]) -
         (p[2 * b + 1] - p[2 * a + 1]) * (p[2 * c] - p[2 * a]);
}

}  // namespace

// Andrew's monotone chain: the lower hull from left to right, the upper one back.
std::vector<int64_t> hull_corners(std::span<const double> p) {
  const size_t n = p.size() / 2;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto place = [&](size_t i) { return std::pair(p[2 * i], p[2 * i + 1]); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  order.erase(
      std::unique(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) == place(b); }),
      order.end());
  std::vector<int64_t> corner(n, 0);
  for (int side = 0; side < 2; ++side) {
    std::vector<size_t> chain;
    for (const size_t i : order) {
      while (chain.size() >= 2 && turn(p, chain[chain.size() - 2], chain.back(), i) <= 0) chain.pop_back();
      chain.push_back(i);
    }
    for (const size_t i : chain) corner[i] = 1;
    std::reverse(order.begin(), order.end());
  }
  return corner;
}

}  // namespace rankscope
