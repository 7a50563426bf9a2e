// Attention as the formula says it, one head and one score at a time.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/support.h"

namespace rankscope {

/// A case with its own storage for heads and scales, and `gap` unused columns behind every row.
struct AttentionCase {
  SmallAttention a;
  std::vector<int32_t> heads;
  std::vector<float> scale;
  int64_t gap = 0;

  AttentionCase(std::vector<int32_t> heads_of, int64_t sequences, int64_t queries, int64_t keys,
                int64_t width_qk, int64_t width_v, bool hard = false, bool shared = false, int64_t gap_of = 0)
      : heads(std::move(heads_of)), gap(gap_of) {
    for (size_t t = 0; t < heads.size(); ++t) scale.push_back(0.6f + 0.1f * static_cast<float>(t));
    a.trials = static_cast<int64_t>(heads.size());
    a.sequences = sequences, a.queries = queries, a.keys = keys;
    a.width_qk = width_qk, a.width_v = width_v;
    a.hard = hard, a.shared_values = shared;
    int64_t out = width_v;
    if (shared)
      for (const int32_t h : heads) out = std::max(out, h * width_v);
    a.q = rows(queries, width_qk), a.k = rows(keys, width_qk), a.v = rows(keys, width_v);
    a.out = rows(queries, out);
    point();
  }
  AttentionCase(const AttentionCase& other) : AttentionCase(other, 0) {}

  void point() { a.heads = heads.data(), a.scale = scale.data(); }
  Rows rows(int64_t tokens, int64_t width) const {
    return {a.sequences * tokens * (width + gap), width + gap};
  }
  int64_t size(Rows r) const { return a.trials * r.trial; }

 private:
  AttentionCase(const AttentionCase& o, int) : a(o.a), heads(o.heads), scale(o.scale), gap(o.gap) { point(); }
};

template <class T>
struct AttentionOperands {
  std::vector<T> q, k, v, d_out;
};

template <class T>
struct AttentionResults {
  std::vector<T> out, dq, dk, dv;
};

inline AttentionOperands<double> random_operands(const AttentionCase& c) {
  return {random_normals(0, c.size(c.a.q)), random_normals(1, c.size(c.a.k)),
          random_normals(2, c.size(c.a.v)), random_normals(3, c.size(c.a.out))};
}

template <class T>
AttentionOperands<T> rounded(const AttentionOperands<double>& x) {
  return {rounded<T>(x.q), rounded<T>(x.k), rounded<T>(x.v), rounded<T>(x.d_out)};
}

/// The same numbers, wide enough to be the truth for floats and doubles.
template <class T>
AttentionOperands<long double> widened(const AttentionOperands<T>& x) {
  const auto wide = [](const std::vector<T>& v) { return std::vector<long double>(v.begin(), v.end()); };
  return {wide(x.q), wide(x.k), wide(x.v), wide(x.d_out)};
}

/// In the gaps stands `untouched`, before and after.
template <class T>
AttentionResults<T> blank_results(const AttentionCase& c, T untouched) {
  const auto fill = [&](Rows r) { return std::vector<T>(static_cast<size_t>(c.size(r)), untouched); };
  return {fill(c.a.out), fill(c.a.q), fill(c.a.k), fill(c.a.v)};
}

template <class T>
AttentionResults<T> plain_attention(const AttentionCase& c, const AttentionOperands<T>& x, T untouched) {
  const SmallAttention& a = c.a;
  AttentionResults<T> r = blank_results(c, untouched);
  const auto at = [](Rows rows, int64_t t, int64_t s, int64_t tokens, int64_t i, int64_t column) {
    return static_cast<size_t>(t * rows.trial + (s * tokens + i) * rows.row + column);
  };
  for (int64_t t = 0; t < a.trials; ++t) {
    const int64_t heads = a.heads[t], dq = a.width_qk / heads,
                  dv = a.shared_values ? a.width_v : a.width_v / heads, step = a.shared_values ? 0 : dv;
    for (int64_t s = 0; s < a.sequences; ++s) {
      for (int64_t j = 0; j < a.keys; ++j) {
        for (int64_t col = 0; col < heads * dq; ++col) r.dk[at(a.k, t, s, a.keys, j, col)] = 0;
        for (int64_t col = 0; col < a.width_v; ++col) r.dv[at(a.v, t, s, a.keys, j, col)] = 0;
      }
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < a.queries; ++i) {
          const auto q = [&](int64_t col) { return at(a.q, t, s, a.queries, i, h * dq + col); };
          const auto k = [&](int64_t j, int64_t col) { return at(a.k, t, s, a.keys, j, h * dq + col); };
          const auto v = [&](int64_t j, int64_t col) { return at(a.v, t, s, a.keys, j, h * step + col); };
          const auto out = [&](int64_t col) { return at(a.out, t, s, a.queries, i, h * dv + col); };
          std::vector<T> w(static_cast<size_t>(a.keys)), slope = w;
          size_t top = 0;
          for (size_t j = 0; j < w.size(); ++j) {
            T sum = 0;
            for (int64_t col = 0; col < dq; ++col) sum += x.q[q(col)] * x.k[k(static_cast<int64_t>(j), col)];
            w[j] = static_cast<T>(a.scale[t]) * sum;
            if (w[j] > w[top]) top = j;
          }
          T total = 0;
          const T shift = w[top];
          for (size_t j = 0; j < w.size(); ++j) {
            w[j] = a.hard ? static_cast<T>(j == top) : std::exp(w[j] - shift);
            total += w[j];
          }
          T mean = 0;
          for (int64_t col = 0; col < dv; ++col) r.out[out(col)] = 0;
          for (int64_t col = 0; col < dq; ++col) r.dq[q(col)] = 0;
          for (size_t n = 0; n < w.size(); ++n) {
            const auto j = static_cast<int64_t>(n);
            w[n] /= total;
            for (int64_t col = 0; col < dv; ++col) {
              r.out[out(col)] += w[n] * x.v[v(j, col)];
              slope[n] += x.d_out[out(col)] * x.v[v(j, col)];
              r.dv[v(j, col)] += w[n] * x.d_out[out(col)];
            }
            mean += w[n] * slope[n];
          }
          if (a.hard) continue;
          for (size_t n = 0; n < w.size(); ++n) {
            const auto j = static_cast<int64_t>(n);
            const T d_score = static_cast<T>(a.scale[t]) * w[n] * (slope[n] - mean);
            for (int64_t col = 0; col < dq; ++col) {
              r.dq[q(col)] += d_score * x.k[k(j, col)];
              r.dk[k(j, col)] += d_score * x.q[q(col)];
            }
          }
        }
    }
  }
  return r;
}

/// The kernel of one instruction set, both passes.
template <class T>
AttentionResults<T> kernel_attention(Isa isa, const AttentionCase& c, const AttentionOperands<T>& x,
                                     T untouched) {
  AttentionResults<T> r = blank_results(c, untouched);
  const simd::TableOf<T>& table = simd::table_of(isa);
  table.attention_forward(c.a, x.q.data(), x.k.data(), x.v.data(), r.out.data());
  table.attention_backward(
      c.a, x.q.data(), x.k.data(), x.v.data(),
      {x.d_out.data(), c.a.out, r.dq.data(), r.dk.data(), r.dv.data(), c.a.q, c.a.k, c.a.v});
  return r;
}

}  // namespace rankscope
