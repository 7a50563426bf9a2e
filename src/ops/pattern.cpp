#include "ops/pattern.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include "kernels/cpu/entropy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "ops/checks.h"
#include "ops/fused.h"

namespace rankscope {
namespace {

using at::Tensor;

double entropy_of(const float* p, int64_t n) { return row_entropy(p, n); }
double entropy_of(const double* p, int64_t n) { return kernels::entropy(p, n); }

template <class T>
void measure(const Tensor& pattern, const PatternStatistics& out) {
  const int64_t rows = pattern.size(-2), keys = pattern.size(-1);
  parallel_over(rows * keys == 0 ? 0 : pattern.numel() / (rows * keys), [&](int64_t i) {
    const T* p = pattern.data_ptr<T>() + i * rows * keys;
    std::vector<double> sums(static_cast<size_t>(keys));
    for (int64_t r = 0; r < rows; ++r) {
      out.entropy.data_ptr<T>()[i * rows + r] = static_cast<T>(entropy_of(p + r * keys, keys));
      kernels::add_row(sums.data(), p + r * keys, keys);
    }
    for (int64_t j = 0; j < keys; ++j)
      out.received.data_ptr<T>()[i * keys + j] = static_cast<T>(sums[static_cast<size_t>(j)]);
  });
}

}  // namespace

PatternStatistics pattern_statistics_reference(const Tensor& pattern) {
  const Tensor counted = pattern.masked_fill((pattern > 0).logical_not(), 1.0);  // 1 log 1 is nothing
  return {-(counted * counted.log()).sum(-1), pattern.sum(-2)};
}

PatternStatistics pattern_statistics(const Tensor& pattern) {
  const bool differentiate = at::GradMode::is_enabled() && pattern.requires_grad();
  if (pattern.is_cuda() || differentiate || !fused_for(pattern)) return pattern_statistics_reference(pattern);
  const Tensor p = pattern.contiguous();
  std::vector<int64_t> by_row = p.sizes().vec(), by_key = by_row;
  by_row.pop_back();
  by_key.erase(by_key.end() - 2);
  PatternStatistics out{at::zeros(by_row, p.options()), at::zeros(by_key, p.options())};
  p.scalar_type() == at::kDouble ? measure<double>(p, out) : measure<float>(p, out);
  return out;
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

std::tuple<Tensor, Tensor> call_pattern_statistics(const Tensor& pattern) {
  require_floats(pattern, "pattern");
  require(pattern.dim() >= 2 && pattern.size(-2) >= 1 && pattern.size(-1) >= 1,
          "pattern must be [.., queries, keys] with at least one of each");
  PatternStatistics found = pattern_statistics(pattern);
  return {found.entropy, found.received};
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("pattern_statistics(Tensor pattern) -> (Tensor entropy, Tensor received)",
        rankscope::call_pattern_statistics);
}
