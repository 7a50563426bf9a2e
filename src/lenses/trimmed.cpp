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
#include "lenses/support/tokens.h"
#include "spectral/on_device.h"
#include "spectral/token_batch.h"

namespace rankscope {
namespace {

constexpr size_t kMetrics = 4;

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
at::Tensor measure_there(const PaddedTokens& t, const at::Tensor& massive) {
  const at::Tensor sizes = (t.x.square().sum(1) / t.count.unsqueeze(1)).sqrt(),
                   flagged = above_median_of(sizes);
  const PaddedTokens kept{t.x * (1 - flagged).unsqueeze(1), t.kept, t.count, t.epsilon};
  const at::Tensor whole = kept.x.square().sum({1, 2}).sqrt(), rest = kept.centered(kept.mean());
  const at::Tensor residual = rest.square().sum({1, 2}).sqrt(), dropped = flagged.sum(1);
  const at::Tensor full = at::minimum(t.count, static_cast<double>(t.x.size(2)) - dropped);
  const int64_t most = std::min(t.x.size(1), t.x.size(2));
  const at::Tensor rank = effective_rank_of(first_of(centered_singular_values(rest, most), full));
  const at::Tensor none = at::full({}, kNone, whole.options()), zero = at::zeros({}, whole.options());
  const at::Tensor out = at::stack({at::where(whole > 0, residual / whole, none),
                                    at::where(full > 0, rank / full, zero), dropped, massive},
                                   1);
  return at::where(whole.isfinite().unsqueeze(1), out, none);
}

class Trimmed : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    if (stays_on_device(view.x, true)) return measure_padded_content(view, measure_there);
    TokenSpectraBatch batch(static_cast<size_t>(view.packing.count()));
    const auto look = [&](const Tokens& all, int64_t massive, size_t slot, double* out) {
      const Tokens t = without_channels(all, above_median(channel_sizes(all)));
      const double whole = std::sqrt(kernels::sum_squares(t.x, t.count * t.width));
      if (!std::isfinite(whole)) return;
      std::vector<double> mean(static_cast<size_t>(t.width));
      kernels::row_mean(t.x, t.count, t.width, mean.data());
      kernels::subtract_row(t.x, t.count, t.width, mean.data());
      const double residual = std::sqrt(kernels::sum_squares(t.x, t.count * t.width));
      out[0] = whole > 0 ? residual / whole : kNone;
      batch.add(slot, t.x, nullptr, t.count, t.width, t.epsilon);
      out[2] = static_cast<double>(all.width - t.width);
      out[3] = static_cast<double>(massive);
    };
    const auto read = [&](size_t slot, double* out) {
      if (!std::isnan(out[2])) out[1] = effective_rank_rel(batch.of(slot).centered);
    };
    return measure_content(view, kMetrics, ContentSteps{look, [&] { batch.settle(); }, read});
  }
};

}  // namespace

extern const Lens lens_trimmed{
    .name = "trimmed",
    .summary = "Rank of the content tokens without massive channels: what the verdict reads",
    .cost = "about 0.04 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics = {{.name = "residual_fro_rel_trimmed",
                 .formula =
                     "||R||_F / ||X||_F over content tokens, channels above 20 median channels left out",
                 .meaning = "share of the tokens' size that tells them apart: near 0 is collapse",
                 .mean = Mean::geometric,
                 .high = 1.0},
                {.name = "effective_rank_centered_rel_trimmed",
                 .formula =
                     "exp(entropy of sigma / sum sigma) of the same R, divided by min(tokens, channels)",
                 .meaning = "share of the directions in which the tokens could differ",
                 .high = 1.0},
                {.name = "trimmed_channels",
                 .formula = "channels whose rms over content tokens exceeds 20 times the median channel's",
                 .meaning = "how many channels the two above leave out"},
                {.name = "trimmed_tokens",
                 .formula = "tokens whose norm exceeds 20 times the median norm of their sample",
                 .meaning = "how many massive tokens the content rule leaves out"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Trimmed>(); }};

}  // namespace rankscope
