#pragma once

#include <string_view>

namespace rankscope {
std::string_view version();  // "0.1.0"
}
