// What the names given to `rankscope plot` stand for in a table, and what is meant where nothing was said.
#pragma once

#include <string>
#include <vector>

#include "report/figure.h"

namespace rankscope {

/// A figure as it was asked for: names that other commands print, and gaps.
struct NamedFigure {
  FigureRequest request{.x = "", .y = {}, .site = {}, .by = {}, .band = {}};
  FigureStyle style = {};
  std::string tokens = {};
};

/// Makes of a heading of scan's table its metric, place and tokens, and fills in the x axis and the tokens:
/// depth and all tokens where the metric has them, else the layer and content tokens. Throws where a metric
/// is one number and no curve. Values may change: a share of heads is the mean of ones and zeros.
void spell_out(std::vector<CellTable>& tables, NamedFigure& figure);

}  // namespace rankscope
