// A skip connection and the norm behind it, in one pass over the rows; one thread, whole range.
#pragma once

#include <cstdint>

namespace rankscope {

/// z = (s - shift) * inverse with s = x + u, and y = gain * z + bias, row by row:
///
///   unit   shift 0             inverse 1 / |s|                          gain one number, no bias
///   rms    shift 0             inverse 1 / sqrt(mean s^2 + epsilon)     gain [width], no bias
///   layer  shift the mean      inverse 1 / sqrt(variance + epsilon)     gain [width], bias [width]
///
/// Row i of an operand starts at i * its stride. A row of zeros under the unit norm gives NaN, as the formula
/// does: there is no direction to keep.
struct SkipNorm {
  enum class Kind { unit, rms, layer } kind = Kind::unit;
  int64_t rows = 0, width = 1;
  double epsilon = 1e-5;
  int64_t x_row = 0, u_row = 0, y_row = 0;
};

/// u may be null: a norm without a skip. Writes y and inverse [rows].
template <class T>  // float, double
void skip_norm_forward(const SkipNorm& n, const T* x, const T* u, const T* gain, const T* bias, T* y,
                       T* inverse);

/// From the gradient of y (rows dy_row apart) writes that of x + u, which is that of x and of u, to dsum
/// (dsum_row apart), and adds those of the parameters to dgain and dbias, row after row: any split of the
/// rows into calls gives the same bits. `inverse` is what forward wrote. dbias is for the layer norm only.
template <class T>
void skip_norm_backward(const SkipNorm& n, const T* x, const T* u, const T* gain, const T* inverse,
                        const T* dy, int64_t dy_row, T* dsum, int64_t dsum_row, T* dgain, T* dbias);

}  // namespace rankscope
