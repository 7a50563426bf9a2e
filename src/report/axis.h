// Where the ticks of an axis go, and what stands beside them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rankscope {

struct FigureAxis {
  double low = 0, high = 1;
  bool log = false;
  std::vector<double> ticks;

  /// From 0 (low) to 1 (high).
  double place(double value) const;
};

/// An axis over [low, high] that begins and ends at round numbers, with about `count` ticks: 1, 2 or 5 times
/// a power of ten, or on a logarithmic axis powers of ten (1, 2 and 5 of them where there are fewer than
/// two). An empty or single-valued range is widened.
FigureAxis nice_axis(double low, double high, bool log, int count);

/// An axis from the first to the last of `values` with a tick at each of them: ranks 1, 2, 4, 8, or every
/// depth. Nothing where there are more than a dozen, or where their numbers would not stand side by side on
/// `width`.
std::optional<FigureAxis> axis_at(std::vector<double> values, bool log, double width,
                                  const std::function<double(const std::string&)>& text_width);

/// "0.25", "1e-07": the shortest that tells the ticks apart.
std::string tick_text(double value);

}  // namespace rankscope
