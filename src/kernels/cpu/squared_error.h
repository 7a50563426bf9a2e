// The squared error of a tile of answers, with its gradient.
#pragma once

#include <cstdint>

namespace rankscope {

/// weight * sum of (answer - target)^2 over rows x width elements; gradient = 2 weight (answer - target),
/// unless it is null. Row i of an operand starts at i * its stride.
template <class T>  // float, double
double squared_error(int64_t rows, int64_t width, T weight, const T* answer, int64_t answer_row,
                     const T* target, int64_t target_row, T* gradient, int64_t gradient_row);

}  // namespace rankscope
