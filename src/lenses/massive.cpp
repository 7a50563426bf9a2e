// Massive activations (Sun et al. 2024): a few numbers, at one token and one channel, thousands of times the
// typical.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/select.h"
#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "lenses/support/on_device.h"
#include "lenses/support/tokens.h"

namespace rankscope {
namespace {

enum MassiveMetric : size_t { kRatio, kToken, kChannel, kMassiveMetrics };  // as they are declared below

struct Peak {
  double ratio = kNone;
  int64_t token = 0, channel = 0;
};

template <class T>
Peak find_peak(const T* x, int64_t count, int64_t width) {
  // Channels of zeros (padding) are no measure of what is typical.
  std::vector<T> there;
  const bool whole = std::all_of(x, x + count * width, [](T v) { return v != 0; });
  if (!whole) std::copy_if(x, x + count * width, std::back_inserter(there), [](T v) { return v != 0; });
  const double middle = whole ? kernels::median_magnitude(x, count * width)
                              : kernels::median_magnitude(there.data(), static_cast<int64_t>(there.size()));
  if (!(middle > 0) || !std::isfinite(middle)) return {};  // nothing to be large beside
  int64_t at = 0;
  T largest = 0;
  for (int64_t i = 0; i < count * width; ++i)
    if (const T v = std::fabs(x[i]); v > largest) largest = v, at = i;
  return {static_cast<double>(largest) / middle, at / width, at % width};
}

class Massive : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    return stays_on_device(view.x) ? whole_there(view) : whole_here(view);
  }

  at::Tensor whole_there(const WholeView& view) {
    const PaddedRows rows = padded_rows(view.x, view.packing);
    const at::Tensor size = rows.x.abs().flatten(1);  // zeros behind a sample are no largest entry
    const at::Tensor behind = (1 - rows.present).unsqueeze(2).to(at::kBool).expand_as(rows.x).flatten(1);
    const at::Tensor nothing = behind.logical_or(size == 0);  // channels of zeros are no measure either
    const at::Tensor sorted = std::get<0>(size.masked_fill(nothing, INFINITY).sort(1));
    const at::Tensor middle = middle_of_sorted(sorted, nothing.logical_not().sum(1));
    const auto [largest, index] = size.max(1);
    const at::Tensor ratio =
        at::where((middle > 0).logical_and(middle.isfinite()), largest.to(at::kDouble) / middle,
                  at::full({}, kNone, middle.options()));
    const at::Tensor place = index.to(at::kDouble), width = at::full({}, rows.x.size(2), middle.options());
    const at::Tensor token = (place / width).floor();
    peaks_.push_back(at::stack({ratio, token, place - token * width}, 1));
    const at::Tensor none = at::full({ratio.size(0), 2}, kNone, ratio.options());
    return at::cat({ratio.unsqueeze(1), none}, 1).unsqueeze(1).unsqueeze(0);
  }

  at::Tensor finish_there() const {
    const at::Tensor all = at::cat(peaks_);  // [samples, 3]
    const at::Tensor most = all.select(1, 0).nan_to_num(-1).argmax();
    const at::Tensor peak = all.index_select(0, most.view({1})).squeeze(0);  // NaN where none has a ratio
    const at::Tensor none = at::full({kMassiveMetrics}, kNone, peak.options()),
                     said = peak + 0 * peak.select(0, 0);
    const at::Tensor values = at::cat({none.narrow(0, 0, 1), said.narrow(0, 1, 2)});
    return at::stack({values, none, at::ones_like(none)}, 1).unsqueeze(0);
  }

  at::Tensor whole_here(const WholeView& view) {
    const at::Tensor x = host(view.x);
    const int64_t samples = view.packing.count(), width = x.size(1);
    std::vector<Peak> peaks(static_cast<size_t>(samples));
    parallel_over(samples, [&](int64_t s) {
      const int64_t first = view.packing.offsets[static_cast<size_t>(s)] * width,
                    count = view.packing.length(s);
      peaks[static_cast<size_t>(s)] = x.scalar_type() == at::kDouble
                                          ? find_peak(x.data_ptr<double>() + first, count, width)
                                          : find_peak(x.data_ptr<float>() + first, count, width);
    });
    Numbers numbers(samples, 0, kMassiveMetrics);
    for (int64_t s = 0; s < samples; ++s) {
      const Peak& peak = peaks[static_cast<size_t>(s)];
      if (std::isnan(peak.ratio)) continue;
      numbers.of(s)[kRatio] = peak.ratio;
      if (!(peak.ratio <= largest_.ratio)) largest_ = peak;
    }
    return numbers.tensor();
  }

  at::Tensor finish() override {
    if (!peaks_.empty()) return finish_there();
    if (std::isnan(largest_.ratio)) return {};
    Totals totals(0, kMassiveMetrics);
    totals.set(kToken, static_cast<double>(largest_.token), kNone, 1);
    totals.set(kChannel, static_cast<double>(largest_.channel), kNone, 1);
    return totals.tensor();
  }

  Peak largest_;
  std::vector<at::Tensor> peaks_;  // on the device: [S, 3] a batch, ratio, token and channel
};

}  // namespace

extern const Lens lens_massive{
    .name = "massive",
    .summary = "The largest activation beside the typical one, and where it sits",
    .cost = "about 0.02 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics = {{.name = "massive_ratio",
                 .formula = "max |x| / median |x| over all tokens and channels of a sample, the median of "
                            "those that are not 0",
                 .meaning = "tens are ordinary; hundreds or more mean one token or channel rules the norms",
                 .low = 1.0,
                 .version = 2},
                {.name = "massive_token",
                 .formula = "position, from 0, of that maximum in the sample with the largest ratio",
                 .meaning = "often 0 or a delimiter; n is 1: it is one sample's",
                 .version = 2},
                {.name = "massive_channel",
                 .formula = "channel, from 0, of that maximum in the sample with the largest ratio",
                 .meaning = "usually the same few channels at every depth",
                 .version = 2}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Massive>(); }};

}  // namespace rankscope
