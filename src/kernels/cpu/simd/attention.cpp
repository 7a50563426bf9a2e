// Walks over trials and sequences and picks the way for each trial's heads. Each sequence is computed alone,
// so that its result does not depend on its neighbours.
#include "kernels/small_attention.h"

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/problem.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

template <class T>
Problem<T> trial_problem(const SmallAttention& a, int64_t t) {
  Problem<T> p;
  p.queries = a.queries, p.keys = a.keys, p.heads = a.heads[t];
  p.width_qk = a.width_qk / p.heads;
  p.width_v = a.shared_values ? a.width_v : a.width_v / p.heads;
  p.value_step = a.shared_values ? 0 : p.width_v;
  p.scale = static_cast<T>(a.scale[t]);
  p.hard = a.hard;
  return p;
}

template <class T>
Matrix<T> sequence_rows(T* data, Rows rows, int64_t t, int64_t s, int64_t tokens) {
  return {data ? data + t * rows.trial + s * tokens * rows.row : nullptr, rows.row};
}

/// Worth it where the heads fill at least half of a vector's lanes.
template <class T>
bool lanes_are_heads(const SmallAttention& a, const Problem<T>& p) {
  return !a.shared_values && p.width_qk <= narrow_head && p.width_v <= narrow_head && 2 * p.heads >= lanes<T>;
}

template <class T, class Each>
void for_each_problem(const SmallAttention& a, const T* q, const T* k, const T* v, const Each& each) {
  for (int64_t t = 0; t < a.trials; ++t) {
    Problem<T> p = trial_problem<T>(a, t);
    for (int64_t s = 0; s < a.sequences; ++s) {
      p.q = sequence_rows(q, a.q, t, s, a.queries);
      p.k = sequence_rows(k, a.k, t, s, a.keys);
      p.v = sequence_rows(v, a.v, t, s, a.keys);
      each(p, t, s);
    }
  }
}

template <class T>
void forward(const SmallAttention& a, const T* q, const T* k, const T* v, T* out) {
  for_each_problem(a, q, k, v, [&](const Problem<T>& p, int64_t t, int64_t s) {
    const Matrix<T> rows = sequence_rows(out, a.out, t, s, a.queries);
    lanes_are_heads(a, p) ? heads_forward(p, rows) : rows_forward(p, rows);
  });
}

template <class T>
void backward(const SmallAttention& a, const T* q, const T* k, const T* v, const AttentionGradients<T>& g) {
  for_each_problem(a, q, k, v, [&](const Problem<T>& p, int64_t t, int64_t s) {
    Gradients<T> d;
    d.out = sequence_rows(g.out, g.out_rows, t, s, a.queries);
    d.q = sequence_rows(g.q, g.q_rows, t, s, a.queries);
    d.k = sequence_rows(g.k, g.k_rows, t, s, a.keys);
    d.v = sequence_rows(g.v, g.v_rows, t, s, a.keys);
    lanes_are_heads(a, p) ? heads_backward(p, d) : rows_backward(p, d);
  });
}

}  // namespace

void attention_forward(const SmallAttention& a, const float* q, const float* k, const float* v, float* out) {
  forward(a, q, k, v, out);
}
void attention_forward(const SmallAttention& a, const double* q, const double* k, const double* v,
                       double* out) {
  forward(a, q, k, v, out);
}
void attention_backward(const SmallAttention& a, const float* q, const float* k, const float* v,
                        const AttentionGradients<float>& g) {
  backward(a, q, k, v, g);
}
void attention_backward(const SmallAttention& a, const double* q, const double* k, const double* v,
                        const AttentionGradients<double>& g) {
  backward(a, q, k, v, g);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
