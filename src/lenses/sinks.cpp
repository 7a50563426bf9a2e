// Attention sinks (Xiao et al. 2023): one key that most queries look at. The mean attention a key receives is
// taken over the queries that may see it, then over samples, and only then is the largest chosen: choosing
// first would find a sink in noise.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "lenses/support/on_device.h"
#include "lenses/support/uniform.h"

namespace rankscope {
namespace {

enum SinksMetric : size_t {
  kMass,
  kPosition,
  kUniform,
  kSinkRatio,
  kSinksMetrics
};  // as they are declared below

/// Mean and spread of what one key of one head received, sample by sample (Welford).
struct Received {
  int64_t samples = 0;
  double mean = 0, squares = 0, uniform = 0;

  void add(double value, double uniform_value) {
    ++samples;
    const double step = value - mean;
    mean += step / static_cast<double>(samples);
    squares += step * (value - mean);
    uniform += (uniform_value - uniform) / static_cast<double>(samples);
  }
  double stderr_of_mean() const {
    const auto n = static_cast<double>(samples);
    return samples > 1 ? std::sqrt(squares / (n - 1) / n) : kNone;
  }
};

class Sinks : public Measurement, public LongMeasurement {
 public:
  explicit Sinks(double excess) : excess_(excess) {}

 private:
  at::Tensor tile(const TileView& view) override {
    stays_on_device(view.tile) ? tile_there(view) : tile_here(view);
    return {};  // the mean over samples comes first
  }

  at::Tensor long_pattern(const LongView& view) override {
    const at::Tensor& sums = view.pattern.received();
    const Mask mask{view.pattern.keys(), view.causal, view.window, view.place.queries};
    if (stays_on_device(sums))
      add_there(sums, mask);
    else
      add_here(sums.contiguous().data_ptr<double>(), sums.size(0), sums.size(1), mask);
    return {};
  }

  // Keys j < T / 2 of causal models: later ones have too few queries.
  static int64_t candidates(const Mask& mask) { return mask.causal ? (mask.length + 1) / 2 : mask.length; }

  void tile_there(const TileView& view) {
    const Mask mask{view.tile.size(3), view.causal, view.window, view.place.queries};
    at::Tensor sums = pattern_sums(view.tile, view.place.first_row, mask).received;
    if (view.place.first_row > 0) sums = sums + sums_there_;
    sums_there_ = sums;
    if (view.last()) add_there(sums, mask);
  }

  void add_there(const at::Tensor& sums, const Mask& mask) {
    const int64_t keys = candidates(mask);
    std::vector<double> queries;
    for (int64_t j = 0; j < keys; ++j)
      queries.push_back(static_cast<double>(mask.end_query(j) - mask.first_query(j)));
    std::vector<double> uniform = received_from_uniform(mask);
    uniform.resize(static_cast<size_t>(keys));
    const auto there = [&](const std::vector<double>& x) {
      return sent(at::tensor(x, sums.scalar_type()), sums.device());
    };
    received_.push_back(sums.narrow(2, 0, keys) / there(queries));
    uniform_.push_back(there(uniform).expand({sums.size(0), keys}));
  }

  void tile_here(const TileView& view) {
    const at::Tensor p = host(view.tile);
    const int64_t samples = p.size(0), heads = p.size(1), rows = p.size(2), T = p.size(3);
    const int64_t first_row = view.place.first_row;
    const Mask mask{T, view.causal, view.window, view.place.queries};
    if (first_row == 0) sums_.assign(static_cast<size_t>(samples * heads * T), 0.0);
    parallel_over(samples * heads, [&](int64_t i) {
      double* columns = sums_.data() + i * T;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t row = (i * rows + r) * T, first = mask.first_key(first_row + r),
                      keys = mask.keys(first_row + r);
        if (p.scalar_type() == at::kDouble)
          kernels::add_row(columns + first, p.data_ptr<double>() + row + first, keys);
        else
          kernels::add_row(columns + first, p.data_ptr<float>() + row + first, keys);
      }
    });
    if (view.last()) add_here(sums_.data(), samples, heads, mask);
  }

  /// Column sums [samples, heads, keys].
  void add_here(const double* sums, int64_t samples, int64_t heads, const Mask& mask) {
    const std::vector<double> uniform = received_from_uniform(mask);
    const int64_t count = candidates(mask);
    if (by_head_.empty()) by_head_.resize(static_cast<size_t>(heads));
    for (int64_t i = 0; i < samples * heads; ++i) {
      std::vector<Received>& keys = by_head_[static_cast<size_t>(i % heads)];
      if (static_cast<int64_t>(keys.size()) < count) keys.resize(static_cast<size_t>(count));
      for (int64_t j = 0; j < count; ++j) {
        const auto queries = static_cast<double>(mask.end_query(j) - mask.first_query(j));
        keys[static_cast<size_t>(j)].add(sums[i * mask.length + j] / queries,
                                         uniform[static_cast<size_t>(j)]);
      }
    }
  }

  at::Tensor finish() override {
    if (!received_.empty()) return finish_there();
    if (by_head_.empty()) return {};
    Totals totals(static_cast<int64_t>(by_head_.size()), kSinksMetrics);
    int64_t sinks = 0, samples = 0;
    for (size_t h = 0; h < by_head_.size(); ++h) {
      const std::vector<Received>& keys = by_head_[h];
      const auto largest = std::max_element(
          keys.begin(), keys.end(), [](const Received& a, const Received& b) { return a.mean < b.mean; });
      if (largest == keys.end() || std::isnan(largest->mean)) continue;
      const auto head = static_cast<int64_t>(h);
      totals.set(head, kMass, largest->mean, largest->stderr_of_mean(), largest->samples);
      totals.set(head, kPosition, static_cast<double>(largest - keys.begin()), kNone, largest->samples);
      totals.set(head, kUniform, largest->uniform, kNone, largest->samples);
      sinks += largest->mean > largest->uniform + excess_;
      samples = std::max(samples, keys.front().samples);
    }
    totals.set(kSinkRatio, static_cast<double>(sinks) / static_cast<double>(by_head_.size()), kNone, samples);
    return totals.tensor();
  }

  // The same as finish, where the tensors are. A sample that is too short for a key says nothing of it: NaN.
  at::Tensor finish_there() const {
    int64_t keys = 0;
    for (const at::Tensor& r : received_) keys = std::max(keys, r.size(2));
    std::vector<at::Tensor> received, uniform;
    for (size_t i = 0; i < received_.size(); ++i) {
      received.push_back(at::constant_pad_nd(received_[i], {0, keys - received_[i].size(2)}, kNone));
      uniform.push_back(at::constant_pad_nd(uniform_[i], {0, keys - uniform_[i].size(1)}, kNone));
    }
    const at::Tensor all = at::cat(received);                               // [samples, H, keys]
    const at::Tensor n = all.isnan().logical_not().sum(0).to(at::kDouble);  // [H, keys]
    const at::Tensor mean = all.nansum(0) / n, beside = at::cat(uniform).nanmean(0).expand_as(mean);
    const at::Tensor squares = (all - mean).square().nansum(0);
    const at::Tensor error =
        at::where(n > 1, (squares / (n - 1) / n).sqrt(), at::full({}, kNone, n.options()));
    const at::Tensor at_key = mean.nan_to_num(-1).argmax(1, true);  // [H, 1]
    const auto there = [&](const at::Tensor& x) { return x.gather(1, at_key).squeeze(1); };
    const at::Tensor mass = there(mean), level = there(beside), none = at::full_like(mass, kNone);
    const at::Tensor sinks = (mass > level + excess_).to(at::kDouble).mean();
    const at::Tensor one = at::stack({sinks, at::full({}, kNone, sinks.options()), n.select(1, 0).max()});
    const at::Tensor whole = at::cat({at::full({kSinkRatio, 3}, kNone, n.options()), one.unsqueeze(0)});
    return head_totals(at::stack({mass, at_key.squeeze(1).to(at::kDouble), level, none}, 1),
                       at::stack({there(error), none, none, none}, 1), there(n).unsqueeze(1), whole);
  }

  double excess_;             // mass above uniform that makes a head count for sink_ratio
  std::vector<double> sums_;  // [sample, head, key] of the view, over the tiles so far
  std::vector<std::vector<Received>> by_head_;
  at::Tensor sums_there_;                       // on the device: [S, H, keys], over the tiles so far
  std::vector<at::Tensor> received_, uniform_;  // [S, H, candidates] and [S, candidates], a batch each
};

}  // namespace

extern const Lens lens_sinks{
    .name = "sinks",
    .summary = "Keys that most queries look at",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}},
    .metrics =
        {{.name = "sink_mass",
          .formula = "largest over keys j of the mean attention from queries that may see it (causal: only "
                     "j < T/2), averaged over the samples that have j before the maximum is taken",
          .meaning = "1: every query puts everything on one key; compare sink_uniform",
          .high = 1.0},
         {.name = "sink_position",
          .formula = "that key's position, from 0",
          .meaning = "0 in most causal models; a delimiter in BERT, where it moves with the sample's length"},
         {.name = "sink_uniform",
          .formula = "what that key would receive from uniform attention under the same mask",
          .meaning = "beside sink_mass: 1/T without a mask, more for early keys of a causal one",
          .high = 1.0},
         {.name = "sink_ratio",
          .formula = "share of the layer's heads with sink_mass > sink_uniform + 0.3 (--threshold sink=)",
          .meaning = "how much of the layer rests on sinks",
          .high = 1.0}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Sinks>(context.sink);
    }};

}  // namespace rankscope
