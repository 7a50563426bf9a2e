// Labels of tokens that nobody asks about: they take no part in the loss, nor in any score. (kNoToken, in
// contrast, says that the sequence has ended.)
#pragma once

#include <cstdint>

namespace rankscope {

constexpr int64_t kUnasked = -100;

}  // namespace rankscope
