// Which way a result is good.
#pragma once

#include <string_view>

namespace rankscope {

enum class Better { less, more, neither };

/// Whether less or more of a result is better, by its name; of most results (a rank, a temperature) neither is.
Better better(std::string_view metric);

}  // namespace rankscope
