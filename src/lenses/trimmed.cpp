// What the verdict reads: content tokens without massive channels. One channel that dwarfs the others makes
// healthy tokens look alike, so channels whose root mean square exceeds 20 times the median channel's are
// left out, and their number is reported.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/support/median.h"
#include "lenses/support/on_device.h"
#include "lenses/support/token_groups.h"
#include "lenses/support/tokens.h"
#include "spectral/on_device.h"
#include "spectral/rows.h"
#include "spectral/token_batch.h"

namespace rankscope {
namespace {

enum TrimmedMetric : size_t {
  kResidual,
  kRank,
  kChannels,
  kTokens,
  kRankOfGroups,
  kTrimmedMetrics
};  // as declared below

/// Root mean square of every channel.
std::vector<double> channel_sizes(const Tokens& t) {
  std::vector<double> sizes(static_cast<size_t>(t.width), 0.0);
  for (int64_t i = 0; i < t.count; ++i) kernels::add_squares(sizes.data(), t.x + i * t.width, t.width);
  for (double& v : sizes) v = std::sqrt(v / static_cast<double>(t.count));
  return sizes;
}

/// The tokens without the flagged channels, packed in place.
Tokens without_channels(const Tokens& t, const std::vector<uint8_t>& flagged) {
  const auto dropped = std::count(flagged.begin(), flagged.end(), uint8_t{1});
  if (dropped == 0) return t;
  double* to = t.x;
  for (int64_t i = 0; i < t.count; ++i)
    for (int64_t j = 0; j < t.width; ++j)
      if (!flagged[static_cast<size_t>(j)]) *to++ = t.x[i * t.width + j];
  return {t.x, t.count, t.width - dropped, t.epsilon};
}

// The same where the tensors are: a channel that is left out is zero.
at::Tensor rank_there(const PaddedTokens& t, const at::Tensor& dropped) {
  const at::Tensor full = at::minimum(t.count, static_cast<double>(t.x.size(2)) - dropped);
  const int64_t most = std::min(t.x.size(1), t.x.size(2));
  const at::Tensor sigma = centered_singular_values(t.centered(t.mean()), most);
  return at::where(full > 0, effective_rank_of(first_of(sigma, full)) / full, at::zeros({}, full.options()));
}

at::Tensor trimmed_there(const PaddedTokens& t, const at::Tensor& massive, const Packing& packing,
                         uint64_t seed) {
  const at::Tensor sizes = (t.x.square().sum(1) / t.count.unsqueeze(1)).sqrt(),
                   flagged = above_median_of(sizes);
  const PaddedTokens kept{t.x * (1 - flagged).unsqueeze(1), t.kept, t.count, t.epsilon};
  const at::Tensor whole = kept.x.square().sum({1, 2}).sqrt(), rest = kept.centered(kept.mean());
  const at::Tensor residual = rest.square().sum({1, 2}).sqrt(), dropped = flagged.sum(1);
  const at::Tensor none = at::full({}, kNone, whole.options());
  const ByLength ranks =
      measure_by_length(kept, packing, seed, [&](const PaddedTokens& some, const std::vector<int64_t>& of) {
        return rank_there(some, dropped.index_select(0, sent(at::tensor(of, at::kLong), dropped.device())))
            .unsqueeze(1);
      });
  const at::Tensor out = at::stack({at::where(whole > 0, residual / whole, none), ranks.whole.select(1, 0),
                                    dropped, massive, ranks.groups.select(1, 0)},
                                   1);
  return at::where(whole.isfinite().unsqueeze(1), out, none);
}

class Trimmed : public Measurement {
 public:
  explicit Trimmed(uint64_t seed) : seed_(seed) {}

 private:
  at::Tensor whole(const WholeView& view) override {
    if (stays_on_device(view.x, true))
      return measure_padded_content(view, [&](const PaddedTokens& t, const at::Tensor& massive) {
        return trimmed_there(t, massive, view.packing, seed_);
      });
    const auto is_long = [&](size_t slot) {
      return view.packing.length(static_cast<int64_t>(slot)) > kLongestTokens;
    };
    TokenSpectraBatch batch(static_cast<size_t>(view.packing.count()));
    const auto look = [&](const Tokens& all, int64_t massive, size_t slot, double* out) {
      const Tokens t = without_channels(all, above_median(channel_sizes(all)));
      const double whole = std::sqrt(kernels::sum_squares(t.x, t.count * t.width));
      if (!std::isfinite(whole)) return;
      std::vector<double> mean(static_cast<size_t>(t.width));
      kernels::row_mean(t.x, t.count, t.width, mean.data());
      kernels::subtract_row(t.x, t.count, t.width, mean.data());
      const double residual = std::sqrt(kernels::sum_squares(t.x, t.count * t.width));
      out[kResidual] = whole > 0 ? residual / whole : kNone;
      if (is_long(slot))
        out[kRankOfGroups] = rank_of_groups(t, view.packing.samples[slot]);
      else
        batch.add(slot, t.x, nullptr, t.count, t.width, t.epsilon);
      out[kChannels] = static_cast<double>(all.width - t.width);
      out[kTokens] = static_cast<double>(massive);
    };
    const auto read = [&](size_t slot, double* out) {
      if (!std::isnan(out[kChannels]) && !is_long(slot))
        out[kRank] = effective_rank_rel(batch.of(slot).centered);
    };
    return measure_content(view, kTrimmedMetrics, ContentSteps{look, [&] { batch.compute(); }, read});
  }

  double rank_of_groups(const Tokens& t, int64_t sample) const {
    double mean = 0;
    for (const TokenGroup& group : token_groups(t, seed_, sample)) {
      const Tokens& some = group.tokens;
      if (some.count == 0) return kNone;
      std::vector<double> middle(static_cast<size_t>(some.width));
      kernels::row_mean(some.x, some.count, some.width, middle.data());
      kernels::subtract_row(some.x, some.count, some.width, middle.data());
      mean += 0.5 * effective_rank_rel(spectrum_of(some.x, some.count, some.width, some.epsilon));
    }
    return mean;
  }

  uint64_t seed_;
};

}  // namespace

extern const Lens lens_trimmed{
    .name = "trimmed",
    .summary = "Rank of the content tokens without massive channels: what the verdict reads",
    .cost = "about 0.04 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics =
        {{.name = "residual_fro_rel_trimmed",
          .formula = "||R||_F / ||X||_F over content tokens, channels above 20 median channels left out",
          .meaning = "share of the tokens' size that tells them apart: near 0 is collapse",
          .mean = Mean::geometric,
          .high = 1.0,
          .version = 2},
         {.name = "effective_rank_centered_rel_trimmed",
          .formula = "exp(entropy of sigma / sum sigma) of the same R, divided by min(tokens, channels)",
          .meaning = "share of the directions in which the tokens could differ",
          .high = 1.0},
         {.name = "trimmed_channels",
          .formula = "channels whose rms over content tokens exceeds 20 times the median channel's",
          .meaning = "how many channels the two above leave out"},
         {.name = "trimmed_tokens",
          .formula = "tokens whose norm exceeds 20 times the median norm of their sample",
          .meaning = "how many massive tokens the content rule leaves out"},
         {.name = "effective_rank_centered_rel_trimmed_rows1024",
          .formula = "effective_rank_centered_rel_trimmed of 1,024 sampled tokens, mean of two disjoint "
                     "groups (more than 2,048 tokens)",
          .meaning = "share of the directions in which 1,024 tokens could differ",
          .high = 1.0}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Trimmed>(context.seed);
    },
    .beside = true};

}  // namespace rankscope
