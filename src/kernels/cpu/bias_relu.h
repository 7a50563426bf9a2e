// What stands between the products of a linear layer: bias and rectifier, and the way back.
#pragma once

#include <cstdint>

namespace rankscope {

/// h = max(h + bias, 0) in place, for rows of `width` elements that start h_row apart. A NaN stays one.
template <class T>  // float, double
void bias_relu(int64_t rows, int64_t width, const T* bias, T* h, int64_t h_row);

/// Clears the elements of dh whose h is zero, and adds what is left, row after row, to dbias [width] unless
/// that is null. h is what bias_relu wrote; a null h clears nothing: then this is the gradient of a bias
/// alone.
template <class T>
void bias_relu_backward(int64_t rows, int64_t width, const T* h, int64_t h_row, T* dh, int64_t dh_row,
                        T* dbias);

}  // namespace rankscope
