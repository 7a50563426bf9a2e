// Attention over long texts by plain loops in double precision, shapes to try it with, and how far a kernel
// may be off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/long_attention.h"

namespace rankscope {

struct LongCase {
  LongAttention a;
  bool sinks = false;
  std::vector<float> q = {}, k = {}, v = {}, sink = {};

  LongOperands operands() const { return {q.data(), k.data(), v.data(), sinks ? sink.data() : nullptr}; }
  std::string name() const {
    return std::to_string(a.queries) + " x " + std::to_string(a.keys) + ", heads " + std::to_string(a.heads) +
           "/" + std::to_string(a.key_heads) + "/" + std::to_string(a.value_heads) + ", widths " +
           std::to_string(a.width_qk) + " and " + std::to_string(a.width_v) + (a.causal ? ", causal" : "") +
           ", window " + std::to_string(a.window) + (sinks ? ", sinks" : "");
  }
};

inline LongCase filled(const LongAttention& a, bool sinks) {
  uint64_t next = 0;
  const auto draw = [&](int64_t count) {
    std::vector<float> x(static_cast<size_t>(count));
    for (float& value : x) value = static_cast<float>(Philox{29, 0, 0}.normal(next++));
    return x;
  };
  LongCase c{a, sinks};
  c.q = draw(a.samples * a.queries * a.heads * a.width_qk);
  c.k = draw(a.samples * a.key_heads * a.keys * a.width_qk);
  c.v = draw(a.samples * a.value_heads * a.keys * a.width_v);
  c.sink = draw(a.heads);
  return c;
}

/// Odd on purpose: one token, a key more or less than a tile, heads that share keys and values, windows wider
/// and narrower than a block, scores so far apart that one key has everything. Widths are multiples of four
/// where a GPU has to take them.
inline std::vector<LongCase> long_cases(bool of_four) {
  const int64_t odd = of_four ? 4 : 1;
  std::vector<LongCase> all;
  const auto add = [&](const LongAttention& a, bool sinks) { all.push_back(filled(a, sinks)); };
  add({1, 1, 1, 1, 1, 1, 4, 4, 1, true, 0}, false);
  add({1, 63, 63, 2, 1, 2, 8 * odd, 4, .4f, true, 0}, true);
  add({2, 65, 65, 4, 2, 1, 12, 5 * odd, .3f, false, 0}, false);
  add({1, 33, 129, 2, 2, 2, 64, 64, .125f, false, 0}, true);
  add({1, 200, 200, 3, 1, 3, 7 * odd, 3 * odd, .2f, true, 37}, false);
  add({1, 150, 150, 2, 2, 1, 16, 100, .25f, false, 70}, true);
  add({1, 131, 131, 1, 1, 1, 32, 128, .2f, true, 1}, true);
  add({1, 96, 96, 1, 1, 1, 128, 36, 4, true, 0}, false);
  add({1, kLongSegment + 77, kLongSegment + 77, 1, 1, 1, 20, 40, .3f, true, 0}, false);
  add({1, 8200, 3, 2, 1, 1, 4, 4, 1, false, 0}, false);  // segments of more than kLongSegment
  return all;
}

struct LongSums {
  std::vector<double> out, mass, entropy, received;  // received [samples, heads, keys]
  double largest_product = 0;  // of scale sum |q| |k|: what roundings of a score are counted in
};

inline LongSums plain_long_attention(const LongCase& c) {
  const LongAttention& a = c.a;
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  LongSums r{std::vector<double>(size(a.samples * a.queries * a.heads * a.width_v)),
             std::vector<double>(size(a.samples * a.heads * a.queries)),
             std::vector<double>(size(a.samples * a.heads * a.queries)),
             std::vector<double>(size(a.samples * a.heads * a.keys))};
  std::vector<double> p(size(a.keys));
  for (int64_t s = 0; s < a.samples; ++s)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.queries; ++i) {
        const float* q = c.q.data() + ((s * a.queries + i) * a.heads + h) * a.width_qk;
        double top = c.sinks ? c.sink[size(h)] : -INFINITY, seen = 0, entropy = 0;
        for (int64_t j = 0; j < a.keys; ++j) {
          const float* k =
              c.k.data() + ((s * a.key_heads + h / (a.heads / a.key_heads)) * a.keys + j) * a.width_qk;
          double score = 0, sizes = 0;
          for (int64_t x = 0; x < a.width_qk; ++x) {
            score += double{a.scale} * double{q[x]} * double{k[x]};
            sizes += double{a.scale} * std::fabs(double{q[x]} * double{k[x]});
          }
          const bool sees = (!a.causal || j <= i) && (a.window == 0 || std::abs(i - j) < a.window);
          p[size(j)] = sees ? score : -INFINITY;
          if (sees) top = std::max(top, score), r.largest_product = std::max(r.largest_product, sizes);
        }
        for (double& x : p) seen += x = std::exp(x - top);
        const double total = seen + (c.sinks ? std::exp(double{c.sink[size(h)]} - top) : 0.0);
        for (int64_t j = 0; j < a.keys; ++j) {
          const double share = p[size(j)] / seen;
          if (share > 0) entropy -= share * std::log(share);
          r.received[size((s * a.heads + h) * a.keys + j)] += p[size(j)] / total;
          const float* v =
              c.v.data() + ((s * a.value_heads + h / (a.heads / a.value_heads)) * a.keys + j) * a.width_v;
          double* out = r.out.data() + ((s * a.queries + i) * a.heads + h) * a.width_v;
          for (int64_t x = 0; x < a.width_v; ++x) out[x] += p[size(j)] / total * double{v[x]};
        }
        r.mass[size((s * a.heads + h) * a.queries + i)] = seen / total;
        r.entropy[size((s * a.heads + h) * a.queries + i)] = entropy;
      }
  return r;
}

/// Room for a kernel's answer, filled with NaN so that what is not written shows.
struct LongAnswer {
  std::vector<float> out;
  std::vector<double> mass, entropy, received;  // received with its segments

  explicit LongAnswer(const LongAttention& a)
      : out(static_cast<size_t>(a.samples * a.queries * a.heads * a.width_v), NAN),
        mass(static_cast<size_t>(a.samples * a.heads * a.queries), NAN),
        entropy(mass.size(), NAN),
        received(static_cast<size_t>(a.samples * a.heads * long_segments(a) * a.keys), NAN) {}
};

/// "" where the answer is right, or what is not. u = 2^-24. A score is off by at most (width + 4) u of its
/// products' sizes; an exponential by that, 4 u of its own, and the sum it is divided by likewise, in which
/// at most 64 terms are added before they are widened, and which is rescaled once in 64 keys at most (CUDA).
/// So attention is off by `each` of itself. An output adds the roundings of a sum over the keys; the
/// entropy's slope in log p is p (1 + |log p|), which sums to 1 + H.
inline std::string fault_of(const LongCase& c, const LongSums& exact, const LongAnswer& answer) {
  constexpr double u = 0x1p-24;
  const LongAttention& a = c.a;
  const auto keys = static_cast<double>(a.keys);
  const double each =
      2 * static_cast<double>(a.width_qk + 4) * u * exact.largest_product + (80 + keys / 8) * u;
  double largest_value = 0;
  for (const float v : c.v) largest_value = std::max(largest_value, std::fabs(double{v}));
  for (size_t i = 0; i < exact.out.size(); ++i)
    if (!(std::fabs(double{answer.out[i]} - exact.out[i]) <= (each + keys * u) * largest_value))
      return "output " + std::to_string(i) + " is " + std::to_string(answer.out[i]) + ", not " +
             std::to_string(exact.out[i]);
  for (size_t i = 0; i < exact.mass.size(); ++i) {
    if (!(std::fabs(answer.mass[i] - exact.mass[i]) <= each)) return "mass " + std::to_string(i);
    if (!(std::fabs(answer.entropy[i] - exact.entropy[i]) <= 2 * each * (1 + exact.entropy[i])))
      return "entropy " + std::to_string(i) + " is " + std::to_string(answer.entropy[i]) + ", not " +
             std::to_string(exact.entropy[i]);
  }
  for (int64_t i = 0; i < a.samples * a.heads; ++i)
    for (int64_t j = 0; j < a.keys; ++j) {
      double sum = 0;
      for (int64_t s = 0; s < long_segments(a); ++s)
        sum += answer.received[static_cast<size_t>((i * long_segments(a) + s) * a.keys + j)];
      const double right = exact.received[static_cast<size_t>(i * a.keys + j)];
      if (!(std::fabs(sum - right) <=
            2 * each * right + 1e-28))  // less than 2^-100 of a row counts as nothing
        return "key " + std::to_string(j) + " receives " + std::to_string(sum) + ", not " +
               std::to_string(right);
    }
  return "";
}

}  // namespace rankscope
