// Narrow heads: one head a lane. The columns of a group of heads are sorted by lane on the way in and back on
// the way out; between, every operation is vertical. Widths 1, 2 and 4 have code of their own.
#include "kernels/cpu/simd/problem.h"
#include "kernels/cpu/simd/scratch.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

/// to[row, column, lane] = factor * from[row, lane * width + column]; lanes from `active` on are zero.
template <int D, class T>
void pack(const T* from, int64_t stride, int64_t rows, int64_t d, int64_t active, T factor, T* to) {
  constexpr int W = lanes<T>;
  const int64_t width = D ? D : d;
  T padded[W * narrow_head] = {};
  for (int64_t i = 0; i < rows; ++i, from += stride, to += width * W) {
    const T* row = from;
    if (active < W) {
      for (int64_t x = 0; x < active * width; ++x) padded[x] = from[x];
      row = padded;
    }
    for (int64_t c = 0; c < width; ++c)
#pragma GCC ivdep
      for (int l = 0; l < W; ++l) to[c * W + l] = factor * row[l * width + c];
  }
}

template <int D, class T>
void unpack(const T* from, int64_t rows, int64_t d, int64_t active, T* to, int64_t stride) {
  constexpr int W = lanes<T>;
  const int64_t width = D ? D : d;
  for (int64_t i = 0; i < rows; ++i, to += stride, from += width * W) {
    if (active == W) {
#pragma GCC ivdep
      for (int l = 0; l < W; ++l)
        for (int64_t c = 0; c < width; ++c) to[l * width + c] = from[c * W + l];
    } else {
      for (int64_t l = 0; l < active; ++l)
        for (int64_t c = 0; c < width; ++c) to[l * width + c] = from[c * W + l];
    }
  }
}

template <class T>
RANKSCOPE_INLINE Vec<T> dot(const Vec<T>* a, const T* b, int64_t width) {
  Vec<T> sum = {};
  for (int64_t c = 0; c < width; ++c) sum += a[c] * load(b + c * lanes<T>);
  return sum;
}

template <class T>
void zero(T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

/// A group of heads, sorted by lane: rows of `width` vectors.
template <class T>
struct Group {
  T *q, *k, *v, *out;  // out: the result, or its gradient on the way back
  T *dq, *dk, *dv;     // backward only
  T *scores, *slopes;  // [2 queries, keys] vectors
};

template <class T>
Group<T> take_group(const Problem<T>& a) {
  constexpr int64_t W = lanes<T>;
  const int64_t q = a.queries * a.width_qk * W, k = a.keys * a.width_qk * W, v = a.keys * a.width_v * W,
                out = a.queries * a.width_v * W, pairs = 2 * a.keys * W;
  Group<T> g;
  g.q = static_cast<T*>(scratch(sizeof(T) * static_cast<size_t>(2 * (q + k + v + pairs) + out)));
  g.k = g.q + q, g.v = g.k + k, g.out = g.v + v, g.dq = g.out + out, g.dk = g.dq + q, g.dv = g.dk + k;
  g.scores = g.dv + v, g.slopes = g.scores + pairs;
  return g;
}

/// The scores of one query into `scores`, and the largest.
template <int D, class T>
RANKSCOPE_INLINE Vec<T> score_row(const Problem<T>& a, const T* k, const Vec<T>* q, T* scores) {
  constexpr int W = lanes<T>;
  const int64_t width = D ? D : a.width_qk;
  Vec<T> top = dot(q, k, width);
  store(scores, top);
  for (int64_t j = 1; j < a.keys; ++j) {
    const Vec<T> s = dot(q, k + j * width * W, width);
    store(scores + j * W, s);
    top = larger<T>(s, top);
  }
  return top;
}

/// chosen[j] = 1 for the first key with the largest score, else 0; NaN for all where a score is one. Over the
/// scores.
template <class T>
RANKSCOPE_INLINE void choose(T* scores, int64_t keys, Vec<T> top) {
  constexpr int W = lanes<T>;
  Vec<T> open = splat<T>(1), lost = {};
  for (int64_t j = 0; j < keys; ++j) {
    const Vec<T> s = load(scores + j * W);
    lost += s == s ? splat<T>(0) : s;
  }
  for (int64_t j = 0; j < keys; ++j) {
    const Vec<T> here = load(scores + j * W) == top ? open : splat<T>(0);
    open -= here;
    store(scores + j * W, here + lost);
  }
}

template <int D, class T>
void group_forward(const Problem<T>& a, const Group<T>& g) {
  constexpr int W = lanes<T>;
  const int64_t width_qk = D ? D : a.width_qk, width_v = D ? D : a.width_v;
  for (int64_t i = 0; i < a.queries; ++i) {
    Vec<T> q[D ? D : narrow_head], out[D ? D : narrow_head] = {};
    for (int64_t c = 0; c < width_qk; ++c) q[c] = load(g.q + (i * width_qk + c) * W);
    const Vec<T> top = score_row<D>(a, g.k, q, g.scores);
    if (a.hard) choose(g.scores, a.keys, top);
    Vec<T> sum = {};
    for (int64_t j = 0; j < a.keys; ++j) {
      const Vec<T> s = load(g.scores + j * W);
      const Vec<T> e = a.hard ? s : exp2_nonpositive(s - top);
      sum += e;
      for (int64_t c = 0; c < width_v; ++c) out[c] += e * load(g.v + (j * width_v + c) * W);
    }
    const Vec<T> over_sum = T(1) / sum;
    for (int64_t c = 0; c < width_v; ++c) store(g.out + (i * width_v + c) * W, out[c] * over_sum);
  }
}

/// Q queries at once, so that each key's gradients are loaded and stored once for all of them.
template <int D, int Q, class T>
void queries_backward(const Problem<T>& a, const Group<T>& g, int64_t first) {
  constexpr int W = lanes<T>;
  constexpr int room = D ? D : narrow_head;
  const int64_t width_qk = D ? D : a.width_qk, width_v = D ? D : a.width_v;
  Vec<T> q[Q][room], d_out[Q][room], dq[Q][room] = {}, mean_slope[Q], over_sum[Q];
  for (int n = 0; n < Q; ++n) {
    const int64_t i = first + n;
    T *scores = g.scores + n * a.keys * W, *slopes = g.slopes + n * a.keys * W;
    for (int64_t c = 0; c < width_qk; ++c) q[n][c] = load(g.q + (i * width_qk + c) * W);
    for (int64_t c = 0; c < width_v; ++c) d_out[n][c] = load(g.out + (i * width_v + c) * W);
    const Vec<T> top = score_row<D>(a, g.k, q[n], scores);
    Vec<T> sum = {}, weighted = {};
    for (int64_t j = 0; j < a.keys; ++j) {
      const Vec<T> e = exp2_nonpositive(load(scores + j * W) - top);
      const Vec<T> slope = dot(d_out[n], g.v + j * width_v * W, width_v);
      store(scores + j * W, e);
      store(slopes + j * W, slope);
      sum += e;
      weighted += e * slope;
    }
    // The weights stay undivided; what they multiply is divided once instead.
    over_sum[n] = T(1) / sum;
    mean_slope[n] = weighted * over_sum[n];
    for (int64_t c = 0; c < width_qk; ++c) q[n][c] *= over_sum[n] * static_cast<T>(ln_2);
    for (int64_t c = 0; c < width_v; ++c) d_out[n][c] *= over_sum[n];
  }
  for (int64_t j = 0; j < a.keys; ++j) {
    Vec<T> e[Q], d_score[Q];
    for (int n = 0; n < Q; ++n) {
      e[n] = load(g.scores + (n * a.keys + j) * W);
      d_score[n] = e[n] * (load(g.slopes + (n * a.keys + j) * W) - mean_slope[n]);
    }
    for (int64_t c = 0; c < width_qk; ++c) {
      T* place = g.dk + (j * width_qk + c) * W;
      const Vec<T> k = load(g.k + (j * width_qk + c) * W);
      Vec<T> dk = load(place);
      for (int n = 0; n < Q; ++n) {
        dk += d_score[n] * q[n][c];
        dq[n][c] += d_score[n] * k;
      }
      store(place, dk);
    }
    for (int64_t c = 0; c < width_v; ++c) {
      T* place = g.dv + (j * width_v + c) * W;
      Vec<T> dv = load(place);
      for (int n = 0; n < Q; ++n) dv += e[n] * d_out[n][c];
      store(place, dv);
    }
  }
  for (int n = 0; n < Q; ++n)
    for (int64_t c = 0; c < width_qk; ++c)
      store(g.dq + ((first + n) * width_qk + c) * W, dq[n][c] * (over_sum[n] * a.scale));
}

/// A hard choice passes the gradient to the chosen value and to nothing else.
template <int D, class T>
void hard_backward(const Problem<T>& a, const Group<T>& g) {
  constexpr int W = lanes<T>;
  const int64_t width_qk = D ? D : a.width_qk, width_v = D ? D : a.width_v;
  zero(g.dq, a.queries * width_qk * W);
  for (int64_t i = 0; i < a.queries; ++i) {
    Vec<T> q[D ? D : narrow_head];
    for (int64_t c = 0; c < width_qk; ++c) q[c] = load(g.q + (i * width_qk + c) * W);
    choose(g.scores, a.keys, score_row<D>(a, g.k, q, g.scores));
    for (int64_t j = 0; j < a.keys; ++j)
      for (int64_t c = 0; c < width_v; ++c) {
        T* place = g.dv + (j * width_v + c) * W;
        store(place, load(place) + load(g.scores + j * W) * load(g.out + (i * width_v + c) * W));
      }
  }
}

template <int D, class T>
void group_backward(const Problem<T>& a, const Group<T>& g) {
  zero(g.dk, a.keys * a.width_qk * lanes<T>);
  zero(g.dv, a.keys * a.width_v * lanes<T>);
  if (a.hard) return hard_backward<D>(a, g);
  int64_t i = 0;
  for (; i + 2 <= a.queries; i += 2) queries_backward<D, 2>(a, g, i);
  if (i < a.queries) queries_backward<D, 1>(a, g, i);
}

template <int D, class T, class Each>
void for_each_group(const Problem<T>& a, const Each& each) {
  constexpr int64_t W = lanes<T>;
  const Group<T> g = take_group(a);
  for (int64_t h = 0; h < a.heads; h += W) {
    const int64_t active = a.heads - h < W ? a.heads - h : W;
    const int64_t qk = h * a.width_qk, v = h * a.width_v;
    pack<D>(a.q.data + qk, a.q.row, a.queries, a.width_qk, active, score_factor(a), g.q);
    pack<D>(a.k.data + qk, a.k.row, a.keys, a.width_qk, active, T(1), g.k);
    pack<D>(a.v.data + v, a.v.row, a.keys, a.width_v, active, T(1), g.v);
    each(g, qk, v, active);
  }
}

template <int D, class T>
void forward(const Problem<T>& a, Matrix<T> out) {
  for_each_group<D>(a, [&](const Group<T>& g, int64_t, int64_t v, int64_t active) {
    group_forward<D>(a, g);
    unpack<D>(g.out, a.queries, a.width_v, active, out.data + v, out.row);
  });
}

template <int D, class T>
void backward(const Problem<T>& a, const Gradients<T>& d) {
  for_each_group<D>(a, [&](const Group<T>& g, int64_t qk, int64_t v, int64_t active) {
    pack<D>(d.out.data + v, d.out.row, a.queries, a.width_v, active, T(1), g.out);
    group_backward<D>(a, g);
    unpack<D>(g.dq, a.queries, a.width_qk, active, d.q.data + qk, d.q.row);
    unpack<D>(g.dk, a.keys, a.width_qk, active, d.k.data + qk, d.k.row);
    if (d.v.data) unpack<D>(g.dv, a.keys, a.width_v, active, d.v.data + v, d.v.row);
  });
}

}  // namespace

template <class T>
void heads_forward(const Problem<T>& a, Matrix<T> out) {
  const int64_t width = a.width_qk == a.width_v ? a.width_v : 0;
  width == 1   ? forward<1>(a, out)
  : width == 2 ? forward<2>(a, out)
  : width == 4 ? forward<4>(a, out)
               : forward<0>(a, out);
}

template <class T>
void heads_backward(const Problem<T>& a, const Gradients<T>& d) {
  const int64_t width = a.width_qk == a.width_v ? a.width_v : 0;
  width == 1   ? backward<1>(a, d)
  : width == 2 ? backward<2>(a, d)
  : width == 4 ? backward<4>(a, d)
               : backward<0>(a, d);
}

template void heads_forward(const Problem<float>&, Matrix<float>);
template void heads_forward(const Problem<double>&, Matrix<double>);
template void heads_backward(const Problem<float>&, const Gradients<float>&);
template void heads_backward(const Problem<double>&, const Gradients<double>&);

}  // namespace rankscope::simd::RANKSCOPE_SIMD
