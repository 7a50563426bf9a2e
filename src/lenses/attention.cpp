// How spread out a head's attention is, beside how spread out its mask lets it be.
#include <ATen/ATen.h>

#include <cmath>

#include "kernels/cpu/entropy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/host.h"
#include "lenses/support/mask.h"
#include "lenses/support/numbers.h"
#include "lenses/support/on_device.h"
#include "lenses/support/sinks.h"
#include "ops/fused.h"

namespace rankscope {
namespace {

double entropy(const float* p, int64_t n) {
  return fused_kernels() ? row_entropy(p, n) : kernels::entropy(p, n);
}
double entropy(const double* p, int64_t n) { return kernels::entropy(p, n); }

/// H(row / its sum), where a learned sink takes a part of the row.
template <class T>
double entropy_of_rest(const T* p, int64_t n) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(p[j]);
  return sum > 0 ? std::max(0.0, entropy(p, n) / sum + std::log(sum)) : 0.0;
}

/// Sum over rows [first, first + count) of H(row) / log(allowed keys), rows that have a choice only.
template <class T>
double normalised_entropy(const T* rows, const Mask& mask, int64_t first, int64_t count, bool sinks) {
  double sum = 0;
  for (int64_t i = first; i < first + count; ++i) {
    if (mask.keys(i) < 2) continue;
    const T* row = rows + (i - first) * mask.length + mask.first_key(i);
    const double h = sinks ? entropy_of_rest(row, mask.keys(i)) : entropy(row, mask.keys(i));
    sum += h / std::log(static_cast<double>(mask.keys(i)));
  }
  return sum;
}

class Attention : public Measurement, public LongMeasurement {
 public:
  explicit Attention(bool sinks) : sinks_(sinks) {}

 private:
  at::Tensor tile(const TileView& view) override {
    return stays_on_device(view.tile) && !sinks_ ? tile_there(view) : tile_here(view);
  }

  // Rows with more than one allowed key.
  static double choices(const Mask& mask) {
    double count = 0;
    for (int64_t i = 0; i < mask.queries; ++i) count += mask.keys(i) > 1;
    return count;
  }

  at::Tensor tile_there(const TileView& view) {
    const Mask mask{view.tile.size(3), view.causal, view.window, view.place.queries};
    at::Tensor sums = pattern_sums(view.tile, view.place.first_row, mask).entropy;
    if (view.place.first_row > 0) sums = sums + earlier_there_;
    earlier_there_ = sums;
    return view.last() ? of_heads((sums / choices(mask)).unsqueeze(-1)) : at::Tensor();
  }

  // Learned sinks or not: the entropy is that of the row over its sum.
  at::Tensor long_pattern(const LongView& view) override {
    const Mask mask{view.pattern.keys(), view.causal, view.window, view.place.queries};
    std::vector<double> weights;
    for (int64_t i = 0; i < mask.queries; ++i)
      weights.push_back(mask.keys(i) > 1 ? 1 / std::log(static_cast<double>(mask.keys(i))) : 0.0);
    const at::Tensor& entropy = view.pattern.entropy();
    const at::Tensor sums = (entropy * sent(at::tensor(weights, at::kDouble), entropy.device())).sum(-1);
    return of_heads((sums / choices(mask)).unsqueeze(-1));
  }

  at::Tensor tile_here(const TileView& view) {
    const at::Tensor p = host(view.tile);
    const int64_t samples = p.size(0), heads = p.size(1), rows = p.size(2), keys = p.size(3);
    const int64_t first = view.place.first_row;
    const Mask mask{keys, view.causal, view.window, view.place.queries};
    std::vector<double> sums(static_cast<size_t>(samples * heads));
    parallel_over(samples * heads, [&](int64_t i) {
      const int64_t at = i * rows * keys;
      sums[static_cast<size_t>(i)] =
          p.scalar_type() == at::kDouble
              ? normalised_entropy(p.data_ptr<double>() + at, mask, first, rows, sinks_)
              : normalised_entropy(p.data_ptr<float>() + at, mask, first, rows, sinks_);
    });
    if (first > 0)  // a later tile of the one sample
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += earlier_.at(i);
    if (!view.last()) {
      earlier_ = std::move(sums);
      return {};
    }
    Numbers numbers(samples, heads, 1);
    for (int64_t i = 0; i < samples * heads; ++i)  // without a row that has a choice: 0 / 0, not defined
      *numbers.of(i / heads, i % heads) = sums[static_cast<size_t>(i)] / choices(mask);
    return numbers.tensor();
  }

  bool sinks_;                   // rows sum to less than one
  std::vector<double> earlier_;  // by head, over the tiles of the sample so far
  at::Tensor earlier_there_;     // the same on the device
};

}  // namespace

extern const Lens lens_attention{
    .name = "attention",
    .summary = "How spread out attention is",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}},
    .metrics =
        {{.name = "attention_entropy",
          .formula =
              "mean over rows with more than one allowed key of H(row) / log(allowed keys); with a key "
              "that has no value H(row / its sum)",
          .meaning = "1: uniform over what the mask allows; 0: one key per query",
          .high = 1.0}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Attention>(rows_fall_short(context));
    }};

}  // namespace rankscope
