// How many directions the tokens of a sample use, of X and of X without its mean.
#include <ATen/ATen.h>

#include <array>
#include <vector>

#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"
#include "lenses/support/token_groups.h"
#include "lenses/support/tokens.h"
#include "spectral/on_device.h"
#include "spectral/token_batch.h"

namespace rankscope {
namespace {

constexpr size_t kNumbers = 7, kSpectraMetrics = 2 * kNumbers;  // of all tokens, and of groups of 1,024

void read(const TokenSpectra& s, double* out) {
  out[0] = effective_rank(s.plain);
  out[1] = effective_rank_rel(s.plain);
  if (s.plain.rows > 1) {  // one token is its own mean
    out[2] = effective_rank(s.centered);
    out[3] = effective_rank_rel(s.centered);
  }
  out[4] = stable_rank(s.plain);
  out[5] = stable_rank_gram(s.plain);
  out[6] = numerical_rank(s.plain).rank;
}

// The same where the tensors are.
at::Tensor spectra_there(const PaddedTokens& t) {
  const at::Tensor mean = t.mean();
  const SigmaPair found = singular_values({t.centered(mean), mean, t.count});
  const double width = static_cast<double>(t.x.size(2));
  const at::Tensor full = t.count.clamp_max(width), none = at::full({}, kNone, full.options());
  const at::Tensor plain = first_of(found.plain, full), centered = first_of(found.centered, full);
  const at::Tensor rank = effective_rank_of(plain), rest = effective_rank_of(centered), several = t.count > 1;
  return at::stack({rank, rank / full, at::where(several, rest, none), at::where(several, rest / full, none),
                    stable_rank_of(plain), stable_rank_gram_of(plain),
                    numerical_rank_of(plain, t.count.clamp_min(width) * t.epsilon)},
                   1);
}

class Spectra : public Measurement {
 public:
  explicit Spectra(uint64_t seed) : seed_(seed) {}

 private:
  at::Tensor whole(const WholeView& view) override {
    if (stays_on_device(view.x, true))
      return measure_padded(view, [&](const PaddedTokens& t) {
        const ByLength found = measure_by_length(
            t, view.packing, seed_,
            [](const PaddedTokens& some, const std::vector<int64_t>&) { return spectra_there(some); });
        return at::cat({found.whole, found.groups}, 1);
      });
    TokenSpectraBatch batch(token_slots(view));
    std::vector<std::array<double, kNumbers>> groups(token_slots(view));
    const auto is_long = [&](size_t slot) {
      return view.packing.length(static_cast<int64_t>(slot / 2)) > kLongestTokens;
    };
    const auto look = [&](const Tokens& t, size_t slot) {
      if (is_long(slot)) {
        groups[slot] = measure_groups(t, view.packing.samples[slot / 2]);
        return;
      }
      std::vector<double> mean(static_cast<size_t>(t.width));
      kernels::row_mean(t.x, t.count, t.width, mean.data());
      kernels::subtract_row(t.x, t.count, t.width, mean.data());
      batch.add(slot, t.x, mean.data(), t.count, t.width, t.epsilon);
    };
    return measure_tokens(view, kSpectraMetrics,
                          TokenSteps{look, [&] { batch.compute(); },
                                     [&](size_t slot, double* out) {
                                       if (is_long(slot))
                                         std::copy(groups[slot].begin(), groups[slot].end(), out + kNumbers);
                                       else
                                         read(batch.of(slot), out);
                                     }});
  }

  /// The mean of both groups.
  std::array<double, kNumbers> measure_groups(const Tokens& t, int64_t sample) const {
    std::array<double, kNumbers> mean{};
    for (const TokenGroup& group : token_groups(t, seed_, sample)) {
      const Tokens& some = group.tokens;
      std::array<double, kNumbers> one;
      one.fill(kNone);
      if (some.count > 0) {
        std::vector<double> middle(static_cast<size_t>(some.width));
        kernels::row_mean(some.x, some.count, some.width, middle.data());
        kernels::subtract_row(some.x, some.count, some.width, middle.data());
        read(token_spectra(some.x, middle.data(), some.count, some.width, some.epsilon), one.data());
      }
      for (size_t k = 0; k < kNumbers; ++k) mean[k] += 0.5 * one[k];
    }
    return mean;
  }

  uint64_t seed_;
};

}  // namespace

extern const Lens lens_spectra{
    .name = "spectra",
    .summary = "How many directions the tokens use",
    .cost = "about 0.04 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics =
        {{.name = "effective_rank",
          .formula = "exp(-sum p log p), p = sigma / sum sigma, of X",
          .meaning = "directions the tokens use, counted by weight; one large mean pulls it to 1"},
         {.name = "effective_rank_rel",
          .formula = "effective_rank / min(tokens, d)",
          .meaning = "share of the directions there could be",
          .high = 1.0},
         {.name = "effective_rank_centered",
          .formula = "exp(-sum p log p), p = sigma / sum sigma, of X - 1 x^T, x the mean token",
          .meaning =
              "directions in which the tokens differ; at collapse it sees rounding, read the residual"},
         {.name = "effective_rank_centered_rel",
          .formula = "effective_rank_centered / min(tokens, d)",
          .meaning = "share of the directions in which the tokens could differ",
          .high = 1.0},
         {.name = "stable_rank",
          .formula = "sum sigma^2 / sigma_1^2 of X",
          .meaning = "energy in units of the strongest direction; never above the rank"},
         {.name = "stable_rank_gram",
          .formula = "sum sigma^4 / sigma_1^4 of X, the stable rank of X X^T",
          .meaning = "as stable_rank, with weaker directions counted less"},
         {.name = "numerical_rank",
          .formula = "count of sigma > max(tokens, d) eps sigma_1 of X, eps of the pass's dtype",
          .meaning = "directions above rounding; full for nearly any real input"},
         {.name = "effective_rank_rows1024",
          .formula =
              "effective_rank of 1,024 sampled tokens, mean of two disjoint groups (more than 2,048 tokens)",
          .meaning = "at most 1,024, so below that of all tokens"},
         {.name = "effective_rank_rel_rows1024",
          .formula = "effective_rank_rows1024 / min(1024, d)",
          .meaning = "share of the directions that 1,024 tokens could use",
          .high = 1.0},
         {.name = "effective_rank_centered_rows1024",
          .formula = "effective_rank_centered of 1,024 sampled tokens, mean of two groups",
          .meaning = "directions in which 1,024 tokens differ"},
         {.name = "effective_rank_centered_rel_rows1024",
          .formula = "effective_rank_centered_rows1024 / min(1024, d)",
          .meaning = "share of the directions in which 1,024 tokens could differ",
          .high = 1.0},
         {.name = "stable_rank_rows1024",
          .formula = "stable_rank of 1,024 sampled tokens, mean of two groups",
          .meaning = "close to that of all tokens where it is small"},
         {.name = "stable_rank_gram_rows1024",
          .formula = "stable_rank_gram of 1,024 sampled tokens, mean of two groups",
          .meaning = "as stable_rank_rows1024, with weaker directions counted less"},
         {.name = "numerical_rank_rows1024",
          .formula = "numerical_rank of 1,024 sampled tokens, mean of two groups",
          .meaning = "at most 1,024"}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Spectra>(context.seed);
    },
    .beside = true};

}  // namespace rankscope
