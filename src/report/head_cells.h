// The heads of a network as a block of cells in a terminal: rows are layers, columns heads.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"

namespace rankscope {

/// What the output loses without each head, on a logarithmic scale, a row a layer with its most important
/// head beside it; no lines where nothing of it was measured or a row does not fit `width`.
std::vector<std::string> head_cells(const ResultTable& table, int width, bool unicode);

}  // namespace rankscope
