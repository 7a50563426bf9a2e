// Curves in a terminal: dots of braille between the points, marks on them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rankscope {

struct PlotCurve {
  std::string label;
  std::vector<std::pair<double, double>>
      points;         // what is not finite (or not above 0 on a log axis) is left out
  bool line = true;   // joined, in the order given
  bool marks = true;  // false: a line only, such as a bound
  bool open = false;  // the open form of the mark: published beside ours
  int shape = 0;      // curves of one shape belong together
};

struct PlotAxes {
  std::string x, y;
  bool log_x = false, log_y = false;
};

/// At most `width` columns; the legend below. Empty when there is no point to draw.
std::vector<std::string> draw_plot(const std::vector<PlotCurve>& curves, const PlotAxes& axes, int width,
                                   int height, bool unicode);

}  // namespace rankscope
