#include "lenses/support/tile_rows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lenses/support/on_device.h"

namespace rankscope {

TileRows rows_of(const TileView& view, const std::vector<int64_t>& queries) {
  const int64_t first = view.place.first_row, rows = view.tile.size(2);
  const auto from = std::ranges::lower_bound(queries, first),
             to = std::ranges::lower_bound(queries, first + rows);
  std::vector<int64_t> here(from, to), index = here;
  if (here.empty()) return {};
  if (std::ssize(here) == rows) return {view.tile, here};
  for (int64_t& row : index) row -= first;
  return {view.tile.index_select(2, sent(at::tensor(index, at::kLong), view.tile.device())), here};
}

}  // namespace rankscope
