// Wide heads, one at a time, by blocks of queries. Scores are held transposed, [keys, queries of the block]:
// then a softmax runs down the keys with a query in each lane, and all seven products of the forward and the
// backward pass are one routine that reads the operands where they lie; only Q and the gradient of the output
// are turned.
#include "kernels/cpu/simd/gemm.h"
#include "kernels/cpu/simd/problem.h"
#include "kernels/cpu/simd/scratch.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

template <class T>
constexpr int block = 64 / static_cast<int>(sizeof(T));  // queries at a time: whole vectors of every set

/// to[column, query] = factor * from[query, column], by squares of W; what is left by smaller ones. Queries
/// from `count` on are zero.
template <int W, class T>
void turn_by(const T* from, int64_t stride, int64_t count, int64_t width, T factor, T* to) {
  int64_t c = 0;
  for (; c + W <= width; c += W)
    for (int64_t first = 0; first < block<T>; first += W) {
      Vec<T, W> square[W];
      for (int64_t r = 0; r < W; ++r)
        square[r] = first + r < count ? load<T, W>(from + (first + r) * stride + c) : Vec<T, W>{};
      transpose<W>(square);
      for (int x = 0; x < W; ++x) store_vec<T, W>(to + (c + x) * block<T> + first, square[x] * factor);
    }
  if constexpr (W > 1)
    if (c < width)
      turn_by<(W > 4 ? W / 2 : 1)>(from + c, stride, count, width - c, factor, to + c * block<T>);
}

template <class T>
void turn(const T* from, int64_t stride, int64_t count, int64_t width, T factor, T* to) {
  turn_by<lanes<T>>(from, stride, count, width, factor, to);
}

/// Scores [keys, block] become weights that sum to one over the keys.
template <class T>
void softmax(T* scores, int64_t keys) {
  constexpr int W = lanes<T>, B = block<T>;
  for (T* column = scores; column < scores + B; column += W) {
    Vec<T> top = load(column), sum = {};
    for (int64_t j = 1; j < keys; ++j) top = larger<T>(load(column + j * B), top);
    for (int64_t j = 0; j < keys; ++j) {
      const Vec<T> e = exp2_nonpositive(load(column + j * B) - top);
      store(column + j * B, e);
      sum += e;
    }
    const Vec<T> over_sum = T(1) / sum;
    for (int64_t j = 0; j < keys; ++j) store(column + j * B, load(column + j * B) * over_sum);
  }
}

/// The first largest score of each query becomes 1, the others 0; all of them NaN where one is.
template <class T>
void choose(T* scores, int64_t keys) {
  constexpr int W = lanes<T>, B = block<T>;
  for (T* column = scores; column < scores + B; column += W) {
    Vec<T> top = load(column), open = splat<T>(1), lost = {};
    for (int64_t j = 0; j < keys; ++j) {
      const Vec<T> s = load(column + j * B);
      top = larger<T>(s, top);
      lost += s == s ? splat<T>(0) : s;
    }
    for (int64_t j = 0; j < keys; ++j) {
      const Vec<T> here = load(column + j * B) == top ? open : splat<T>(0);
      open -= here;
      store(column + j * B, here + lost);
    }
  }
}

/// slopes (gradients of the weights) become gradients of the scores: scale * w (slope - sum_j w slope).
template <class T>
void softmax_backward(const T* weights, T* slopes, int64_t keys, T scale) {
  constexpr int W = lanes<T>, B = block<T>;
  for (int64_t first = 0; first < B; first += W) {
    const T* w = weights + first;
    T* slope = slopes + first;
    Vec<T> mean = {};
    for (int64_t j = 0; j < keys; ++j) mean += load(w + j * B) * load(slope + j * B);
    for (int64_t j = 0; j < keys; ++j)
      store(slope + j * B, load(w + j * B) * (load(slope + j * B) - mean) * scale);
  }
}

template <class T>
struct Block {
  T *q_turned, *d_out_turned, *weights, *slopes;
};

template <class T>
Block<T> take_block(const Problem<T>& a) {
  const int64_t sizes = 2 * a.keys + a.width_qk + a.width_v;
  Block<T> b;
  b.q_turned = static_cast<T*>(scratch(sizeof(T) * static_cast<size_t>(sizes * block<T>)));
  b.d_out_turned = b.q_turned + a.width_qk * block<T>;
  b.weights = b.d_out_turned + a.width_v * block<T>;
  b.slopes = b.weights + a.keys * block<T>;
  return b;
}

/// Calls each(head, first query, queries) with the weights of those queries in `b`.
template <class T, class Each>
void for_each_block(const Problem<T>& a, const Block<T>& b, const Each& each) {
  for (int64_t h = 0; h < a.heads; ++h)
    for (int64_t i = 0; i < a.queries; i += block<T>) {
      const int64_t count = a.queries - i < block<T> ? a.queries - i : block<T>;
      turn(a.q.data + i * a.q.row + h * a.width_qk, a.q.row, count, a.width_qk, score_factor(a), b.q_turned);
      gemm<T>(a.keys, block<T>, a.width_qk, {a.k.data + h * a.width_qk, a.k.row, 1}, b.q_turned, block<T>,
              b.weights, block<T>);
      a.hard ? choose(b.weights, a.keys) : softmax(b.weights, a.keys);
      each(h, i, count);
    }
}

template <class T>
void zero(Matrix<T> m, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < columns; ++c) m.data[i * m.row + c] = 0;
}

}  // namespace

template <class T>
void rows_forward(const Problem<T>& a, Matrix<T> out) {
  const Block<T> b = take_block(a);
  for_each_block(a, b, [&](int64_t h, int64_t i, int64_t count) {
    gemm<T>(count, a.width_v, a.keys, {b.weights, 1, block<T>}, a.v.data + h * a.value_step, a.v.row,
            out.data + i * out.row + h * a.width_v, out.row);
  });
}

template <class T>
void rows_backward(const Problem<T>& a, const Gradients<T>& d) {
  const Block<T> b = take_block(a);
  if (a.hard) zero(d.q, a.queries, a.heads * a.width_qk);
  zero(d.k, a.keys, a.heads * a.width_qk);
  if (d.v.data) zero(d.v, a.keys, a.value_step ? a.heads * a.width_v : a.width_v);
  for_each_block(a, b, [&](int64_t h, int64_t i, int64_t count) {
    const int64_t qk = h * a.width_qk, v = h * a.value_step;
    const T* d_out = d.out.data + i * d.out.row + h * a.width_v;
    if (d.v.data)
      gemm<T>(a.keys, a.width_v, count, {b.weights, block<T>, 1}, d_out, d.out.row, d.v.data + v, d.v.row,
              true);
    if (a.hard) return;
    turn(d_out, d.out.row, count, a.width_v, T(1), b.d_out_turned);
    gemm<T>(a.keys, block<T>, a.width_v, {a.v.data + v, a.v.row, 1}, b.d_out_turned, block<T>, b.slopes,
            block<T>);
    softmax_backward(b.weights, b.slopes, a.keys, a.scale);
    gemm<T>(count, a.width_qk, a.keys, {b.slopes, 1, block<T>}, a.k.data + qk, a.k.row,
            d.q.data + i * d.q.row + qk, d.q.row);
    gemm<T>(a.keys, a.width_qk, count, {b.slopes, block<T>, 1}, a.q.data + i * a.q.row + qk, a.q.row,
            d.k.data + qk, d.k.row, true);
  });
}

template void rows_forward(const Problem<float>&, Matrix<float>);
template void rows_forward(const Problem<double>&, Matrix<double>);
template void rows_backward(const Problem<float>&, const Gradients<float>&);
template void rows_backward(const Problem<double>&, const Gradients<double>&);

}  // namespace rankscope::simd::RANKSCOPE_SIMD
