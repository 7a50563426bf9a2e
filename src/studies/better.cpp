#include "studies/better.h"

#include <algorithm>
#include <array>

namespace rankscope {

Better better(std::string_view metric) {
  if (metric.ends_with("_error") || metric.ends_with("_stderr")) return Better::neither;  // standard errors
  constexpr std::array more{"accuracy", "recalled", "advantage"};
  constexpr std::array less{"mse", "loss", "wrong", "voronoi"};
  const auto holds = [&](const char* part) { return metric.find(part) != std::string_view::npos; };
  if (std::any_of(more.begin(), more.end(), holds)) return Better::more;
  return metric == "error" || std::any_of(less.begin(), less.end(), holds) ? Better::less : Better::neither;
}

}  // namespace rankscope
