// What the two running forms of attention do with one chunk of tokens. Matrices "by channel" are [channels,
// kRunningChunk]: one row holds a channel of every token, so that lanes are tokens.
#pragma once

#include <cstddef>

#include "kernels/cpu/simd/gemm.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/running_attention.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

constexpr int64_t kC = kRunningChunk;
constexpr int64_t kRows = 16;  // of a triangle at once: what lies above the diagonal is skipped by as many

/// Buffers one behind another, each at the beginning of a cache line. Of nothing it only counts.
template <class T>
class Room {
 public:
  Room() = default;
  explicit Room(void* at) : at_(static_cast<char*>(at)) {}
  T* take(int64_t count) {
    char* from = at_ + taken_;
    taken_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(from);
  }
  size_t taken() const { return taken_; }

 private:
  char* at_ = nullptr;
  size_t taken_ = 0;
};

/// to [columns, rows] = from [rows, columns] turned.
template <class T>
void turn(int64_t rows, int64_t columns, const T* from, int64_t from_row, T* to, int64_t to_row) {
  constexpr int W = lanes<T>;
  int64_t i = 0;
  for (; i + W <= rows; i += W) {
    int64_t j = 0;
    for (; j + W <= columns; j += W) {
      Vec<T> square[W];
      for (int r = 0; r < W; ++r) square[r] = load(from + (i + r) * from_row + j);
      transpose<W>(square);
      for (int r = 0; r < W; ++r) store(to + (j + r) * to_row + i, square[r]);
    }
    for (; j < columns; ++j)
      for (int r = 0; r < W; ++r) to[j * to_row + i + r] = from[(i + r) * from_row + j];
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
}

/// Every row of x [rows, kC] times s [n], lane by lane.
template <class T>
void scale_lanes(int64_t rows, int64_t n, const T* s, T* x) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) x[r * kC + i] *= s[i];
}

template <class T>
void scale_all(int64_t count, T s, T* x) {
  for (int64_t i = 0; i < count; ++i) x[i] *= s;
}

/// c [n, kC] = a b on and below the diagonal, and somewhat above: a [n, depth] by `a`, b by channel.
template <class T>
void lower_products(int64_t n, int64_t depth, const T* a, int64_t a_row, const T* b, T* c) {
  for (int64_t r = 0; r < n; r += kRows) {
    const int64_t rows = n - r < kRows ? n - r : kRows;
    gemm<T>(rows, r + rows, depth, {a + r * a_row, a_row, 1}, b, kC, c + r * kC, kC);
  }
}

/// c [n, columns] = L b, or += with `add`; L [n, kC] has zeros above the diagonal.
template <class T>
void times_lower(int64_t n, int64_t columns, const T* L, const T* b, int64_t b_row, T* c, int64_t c_row,
                 bool add) {
  for (int64_t r = 0; r < n; r += kRows) {
    const int64_t rows = n - r < kRows ? n - r : kRows;
    gemm<T>(rows, columns, r + rows, {L + r * kC, kC, 1}, b, b_row, c + r * c_row, c_row, add);
  }
}

/// c [n, columns] = L^T b, or += with `add`.
template <class T>
void times_lower_turned(int64_t n, int64_t columns, const T* L, const T* b, int64_t b_row, T* c,
                        int64_t c_row, bool add) {
  for (int64_t r = 0; r < n; r += kRows) {
    const int64_t rows = n - r < kRows ? n - r : kRows;
    gemm<T>(rows, columns, n - r, {L + r * kC + r, 1, kC}, b + r * b_row, b_row, c + r * c_row, c_row, add);
  }
}

/// x [n, columns] += turned y, where y is by channel.
template <class T>
void add_turned(int64_t n, int64_t columns, const T* y, T* x, T* room) {
  turn(columns, n, y, kC, room, columns);
  for (int64_t i = 0; i < n * columns; ++i) x[i] += room[i];
}

/// What is kept between the tokens of a chunk: G_ij = keep_{j+1} ... keep_i. As products, not by logarithms:
/// a token that keeps nothing is no special case.
template <class T>
struct Kept {
  T G[kC * kC];     // ones on the diagonal, zeros above it
  T before[kC];     // of the state before the chunk: keep_0 ... keep_i
  T to_end[kC];     // of token j at the chunk's end: the last row of G
  bool all = true;  // everything is kept: none of these is set

  void of(int64_t n, const T* keep) {
    all = keep == nullptr;
    if (all) return;
    T whole = 1;
    for (int64_t i = 0; i < n; ++i) {
      T* row = G + i * kC;
      for (int64_t j = 0; j < i; ++j) row[j] = keep[i] * row[j - kC];
      row[i] = 1;
      for (int64_t j = i + 1; j < n; ++j) row[j] = 0;
      before[i] = whole *= keep[i];
    }
    for (int64_t j = 0; j < n; ++j) to_end[j] = G[(n - 1) * kC + j];
  }
};

}  // namespace rankscope::simd::RANKSCOPE_SIMD
