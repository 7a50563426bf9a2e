// Every metric in the most obvious way, in double precision: loops, full matrices, at::linalg_svd. Nothing
// here is shared with the code it checks. Header only, so that any room's test program has it.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace reference {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline at::Tensor wide(const at::Tensor& x) { return x.to(at::kDouble).contiguous(); }
inline double at2(const at::Tensor& x, int64_t i, int64_t j) { return x[i][j].item<double>(); }

inline std::vector<double> sigma(const at::Tensor& x) {
  const at::Tensor s = std::get<1>(at::linalg_svd(wide(x), false)).contiguous();
  return {s.data_ptr<double>(), s.data_ptr<double>() + s.numel()};
}

// ---- numbers of a spectrum
// ---------------------------------------------------------------------------------------

inline double effective_rank(const std::vector<double>& s) {
  double total = 0, entropy = 0;
  for (const double v : s) total += v;
  if (total == 0) return 0;
  for (const double v : s)
    if (v > 0) entropy -= v / total * std::log(v / total);
  return std::exp(entropy);
}
inline double power_ratio(const std::vector<double>& s, int power) {
  double sum = 0;
  for (const double v : s) sum += std::pow(v, power);
  return s[0] == 0 ? 0 : sum / std::pow(s[0], power);
}
inline double stable_rank(const std::vector<double>& s) { return power_ratio(s, 2); }
inline double stable_rank_gram(const std::vector<double>& s) { return power_ratio(s, 4); }
inline double numerical_rank(const std::vector<double>& s, int64_t longest, double epsilon) {
  const double tolerance = static_cast<double>(longest) * epsilon * s[0];
  return static_cast<double>(std::count_if(s.begin(), s.end(), [&](double v) { return v > tolerance; }));
}

/// How far effective_rank may move when each sigma moves by what the Gram route allows, `error` for the
/// smallest and error^2 / sigma for the others, or by `error` each: |d log erank| <= sum |d sigma| (|log p| +
/// H) / sum sigma, p no smaller than the error leaves it.
inline double effective_rank_tolerance(const std::vector<double>& s, double error, bool gram = true) {
  double total = 0, moved = 0;
  for (const double v : s) total += v;
  if (total == 0) return 0;
  const double rank = effective_rank(s), entropy = std::log(rank);
  for (const double v : s) {
    const double shift = gram && v > error ? error * error / v : error;
    moved += shift / total * (std::fabs(std::log(std::max(v, error) / total)) + entropy + 1);
  }
  return rank * (moved + 1e-13);
}

// ---- tokens
// ------------------------------------------------------------------------------------------------------

inline at::Tensor centered(const at::Tensor& x) { return wide(x) - wide(x).mean(0, true); }
inline double frobenius(const at::Tensor& x) { return std::sqrt(wide(x).square().sum().item<double>()); }
inline double composite(const at::Tensor& x) {
  const at::Tensor a = wide(x).abs();
  return std::sqrt(a.sum(0).max().item<double>() * a.sum(1).max().item<double>());
}
inline double token_cosine(const at::Tensor& x) {
  const at::Tensor a = wide(x);
  double sum = 0, pairs = 0;
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < a.size(0); ++j) {
      const double length = frobenius(a[i]) * frobenius(a[j]);
      if (i == j || length == 0) continue;
      sum += (a[i] * a[j]).sum().item<double>() / length;
      ++pairs;
    }
  return sum / pairs;
}
inline double middle(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  return n % 2 == 1 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}
inline double massive_ratio(const at::Tensor& x) {
  const at::Tensor a = wide(x).abs().reshape({-1});
  return a.max().item<double>() / middle({a.data_ptr<double>(), a.data_ptr<double>() + a.numel()});
}
/// Rows that are content and not massive.
inline at::Tensor content_rows(const at::Tensor& x, const std::vector<uint8_t>& content) {
  std::vector<double> norms;
  for (int64_t i = 0; i < x.size(0); ++i) norms.push_back(frobenius(x[i]));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < x.size(0); ++i)
    if (content[static_cast<size_t>(i)] && norms[static_cast<size_t>(i)] <= 20 * middle(norms))
      kept.push_back(i);
  return x.index_select(0, at::tensor(kept, at::kLong));
}
/// Columns whose rms is at most 20 times the median column's.
inline at::Tensor ordinary_channels(const at::Tensor& x) {
  std::vector<double> sizes;
  for (int64_t j = 0; j < x.size(1); ++j) sizes.push_back(frobenius(x.select(1, j)));
  std::vector<int64_t> kept;
  for (int64_t j = 0; j < x.size(1); ++j)
    if (sizes[static_cast<size_t>(j)] <= 20 * middle(sizes)) kept.push_back(j);
  return x.index_select(1, at::tensor(kept, at::kLong));
}

// ---- attention
// ---------------------------------------------------------------------------------------------------

inline bool sees(int64_t i, int64_t j, bool causal, int64_t window) {
  return (!causal || j <= i) && (window == 0 || std::abs(i - j) < window);
}
inline at::Tensor allowed(int64_t T, bool causal, int64_t window) {
  at::Tensor m = at::zeros({T, T}, at::kDouble);
  for (int64_t i = 0; i < T; ++i)
    for (int64_t j = 0; j < T; ++j)
      if (sees(i, j, causal, window)) m[i][j] = 1.0;
  return m;
}
inline at::Tensor uniform(int64_t T, bool causal, int64_t window) {
  const at::Tensor m = allowed(T, causal, window);
  return m / m.sum(1, true);
}
inline double mixing(const at::Tensor& a) { return sigma(centered(a))[0]; }
inline double attention_entropy(const at::Tensor& a, bool causal, int64_t window) {
  double sum = 0, rows = 0;
  for (int64_t i = 0; i < a.size(0); ++i) {
    double entropy = 0, keys = 0;
    for (int64_t j = 0; j < a.size(1); ++j) {
      if (!sees(i, j, causal, window)) continue;
      ++keys;
      if (const double p = at2(a, i, j); p > 0) entropy -= p * std::log(p);
    }
    if (keys < 2) continue;
    sum += entropy / std::log(keys);
    ++rows;
  }
  return sum / rows;
}
/// Mean attention key j receives from the queries that may see it.
inline double received(const at::Tensor& a, int64_t j, bool causal, int64_t window) {
  double sum = 0, queries = 0;
  for (int64_t i = 0; i < a.size(0); ++i)
    if (sees(i, j, causal, window)) sum += at2(a, i, j), ++queries;
  return sum / queries;
}

// ---- heads
// -------------------------------------------------------------------------------------------------------

inline double head_output_rel(const at::Tensor& z, const at::Tensor& W_O, const at::Tensor& x, int64_t head) {
  const int64_t d_v = z.size(2);
  const at::Tensor out = at::mm(wide(z.select(1, head)), wide(W_O.narrow(1, head * d_v, d_v)).t());
  return frobenius(out) / frobenius(x);
}

}  // namespace reference
