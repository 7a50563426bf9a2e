// The attention of one trial and one sequence: what the two ways of computing it are given.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t row = 0;
};

template <class T>
struct Problem {
  int64_t queries = 0, keys = 0, heads = 0;
  int64_t width_qk = 0, width_v = 0;  // of one head
  int64_t value_step = 0;             // from one head's values to the next one's; 0 where all share them
  T scale = 0;
  bool hard = false;
  Matrix<const T> q, k, v;
};

template <class T>
struct Gradients {
  Matrix<const T> out;
  Matrix<T> q, k, v;  // v.data may be null: not wanted
};

constexpr double log2_e = 1.44269504088896340736, ln_2 = 0.693147180559945309417;

/// Scores are kept in units of ln 2, so that a softmax needs powers of two only. A hard choice takes them as
/// they are.
template <class T>
T score_factor(const Problem<T>& a) {
  return a.hard ? a.scale : static_cast<T>(a.scale * log2_e);
}

/// Lanes are heads: for narrow ones. Nothing is ever summed across lanes.
template <class T>
void heads_forward(const Problem<T>& a, Matrix<T> out);
template <class T>
void heads_backward(const Problem<T>& a, const Gradients<T>& d);

/// One head at a time, lanes are queries or columns: for wide heads, few heads and shared values.
template <class T>
void rows_forward(const Problem<T>& a, Matrix<T> out);
template <class T>
void rows_backward(const Problem<T>& a, const Gradients<T>& d);

/// Widest head whose columns are kept one register each.
constexpr int64_t narrow_head = 7;

}  // namespace rankscope::simd::RANKSCOPE_SIMD
