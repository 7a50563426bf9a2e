#include "lenses/support/uniform.h"

#include <map>
#include <mutex>

namespace rankscope {
namespace {

/// sums[i] = x[0] + ... + x[i - 1].
std::vector<double> running_sums(const double* x, int64_t n) {
  std::vector<double> sums(static_cast<size_t>(n) + 1, 0.0);
  for (int64_t i = 0; i < n; ++i) sums[static_cast<size_t>(i) + 1] = sums[static_cast<size_t>(i)] + x[i];
  return sums;
}

double between(const std::vector<double>& sums, int64_t first, int64_t end) {
  return sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first)];
}

}  // namespace

LinearMap centered_uniform(const Mask& mask) {
  const int64_t T = mask.queries;
  return {T, mask.length,
          [mask, T](const double* x, double* y) {
            const std::vector<double> sums = running_sums(x, mask.length);
            double mean = 0;
            for (int64_t i = 0; i < T; ++i) {
              y[i] = between(sums, mask.first_key(i), mask.end_key(i)) / static_cast<double>(mask.keys(i));
              mean += y[i] / static_cast<double>(T);
            }
            for (int64_t i = 0; i < T; ++i) y[i] -= mean;
          },
          [mask, T](const double* y, double* x) {
            double mean = 0;
            for (int64_t i = 0; i < T; ++i) mean += y[i] / static_cast<double>(T);
            std::vector<double> weighted(static_cast<size_t>(T));
            for (int64_t i = 0; i < T; ++i)
              weighted[static_cast<size_t>(i)] = (y[i] - mean) / static_cast<double>(mask.keys(i));
            const std::vector<double> sums = running_sums(weighted.data(), T);
            for (int64_t j = 0; j < mask.length; ++j)
              x[j] = between(sums, mask.first_query(j), mask.end_query(j));
          }};
}

double mixing_of_uniform(const Mask& mask) {
  if (!mask.causal && mask.window == 0) return 0.0;  // every row alike
  static std::mutex mutex;
  static std::map<Mask, double> known;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = known.try_emplace(mask, 0.0);
  if (fresh) entry->second = spectral_norm(centered_uniform(mask)).value;
  return entry->second;
}

std::vector<double> received_from_uniform(const Mask& mask) {
  std::vector<double> weights(static_cast<size_t>(mask.queries)), received(static_cast<size_t>(mask.length));
  for (int64_t i = 0; i < mask.queries; ++i)
    weights[static_cast<size_t>(i)] = 1.0 / static_cast<double>(mask.keys(i));
  const std::vector<double> sums = running_sums(weights.data(), mask.queries);
  for (int64_t j = 0; j < mask.length; ++j)
    received[static_cast<size_t>(j)] = between(sums, mask.first_query(j), mask.end_query(j)) /
                                       static_cast<double>(mask.end_query(j) - mask.first_query(j));
  return received;
}

}  // namespace rankscope
