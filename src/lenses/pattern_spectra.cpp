// Spectra of attention matrices, and how much of the differences between tokens one application can keep.
// Matrices up to 512 long are read whole. Longer ones are read through two disjoint groups of 256 rows,
// scaled to the full length; their metrics have names of their own, because 256 rows cannot show a rank above
// 256.
#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "base/stats.h"
#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "lenses/support/sampled_rows.h"
#include "lenses/support/uniform.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

// As they are declared below: six numbers of whole matrices, the floor, and the same six of sampled rows.
constexpr size_t kCount = 6, kMixingUniform = 6, kRows = 7, kMetrics = 13;

struct Measured {
  std::array<double, kCount> numbers;
  std::vector<double> sigma;
};

/// Every matrix of p [.., rows, keys]: `rows` rows out of `queries`. The singular values grow with the number
/// of rows like its root.
std::vector<Measured> measure_each(const at::Tensor& p, int64_t queries) {
  const double scale = std::sqrt(static_cast<double>(queries) / static_cast<double>(p.size(-2)));
  std::vector<Measured> out;
  std::vector<CenteredSpectrum> spectra = centered_spectra_of_batch(p);
  for (auto& [s, norm] : spectra) {
    if (std::isnan(s.largest())) {
      out.push_back({{kNone, kNone, kNone, kNone, kNone, kNone}, {}});
      continue;
    }
    const double rank = effective_rank(s), full = static_cast<double>(s.sigma.size());
    out.push_back(
        {{rank, rank / full, stable_rank(s), numerical_rank(s).rank, scale * spectral_gap(s), scale * norm},
         std::move(s.sigma)});
  }
  return out;
}

class PatternSpectra : public Measurement {
 public:
  explicit PatternSpectra(const LensContext& context) : seed_(context.seed) {}

 private:
  at::Tensor tile(const TileView& view) override {
    const int64_t samples = view.tile.size(0), rows = view.tile.size(2), queries = view.place.queries;
    Numbers numbers(samples, view.tile.size(1), kMetrics);
    if (queries > kLongestWhole) {
      for (int64_t s = 0; s < samples; ++s) add_rows(view, s);
    } else if (rows == queries) {
      measure_whole(view, host(view.tile), numbers);
    } else {
      if (view.place.first_row == 0) tiles_.clear();
      tiles_.push_back(host(view.tile).clone());
      if (view.last()) measure_whole(view, at::cat(tiles_, 2), numbers);
    }
    if (!view.last()) return {};
    const double uniform = mixing_of_uniform({view.tile.size(3), view.causal, view.window, queries});
    for (int64_t s = 0; s < samples; ++s) numbers.of(s)[kMixingUniform] = uniform;
    return numbers.tensor();
  }

  static int64_t sample(const TileView& view, int64_t s) {
    return view.packing.samples[static_cast<size_t>(view.place.first_sample + s)];
  }

  void measure_whole(const TileView& view, const at::Tensor& p, Numbers& numbers) {
    std::vector<Measured> measured = measure_each(p, view.place.queries);
    const int64_t heads = p.size(1);
    for (int64_t i = 0; i < p.size(0) * heads; ++i) {
      Measured& one = measured[static_cast<size_t>(i)];
      std::copy(one.numbers.begin(), one.numbers.end(), numbers.of(i / heads, i % heads));
      if (sample(view, i / heads) == kShownSample) shown_.push_back(std::move(one.sigma));
    }
    tiles_.clear();
  }

  void add_rows(const TileView& view, int64_t s) {
    const int64_t queries = view.place.queries;
    if (view.place.first_row == 0) rows_ = std::make_unique<SampledRows>(seed_, sample(view, s), queries);
    rows_->add(view.tile[s], view.place.first_row);
    if (!view.last()) return;
    std::array<std::vector<Measured>, kGroups> groups;
    for (size_t g = 0; g < kGroups; ++g)
      groups[g] = measure_each(rows_->group(static_cast<int64_t>(g)), queries);
    rows_.reset();
    if (by_head_.empty()) by_head_.resize(groups[0].size());
    for (size_t h = 0; h < by_head_.size(); ++h)
      for (size_t k = 0; k < kCount; ++k) {
        const double a = groups[0][h].numbers[k], b = groups[1][h].numbers[k];
        if (std::isnan(a + b)) continue;
        by_head_[h][k].means.push_back(0.5 * (a + b));
        by_head_[h][k].spread = 0.5 * std::fabs(a - b);
      }
  }

  at::Tensor finish() override {
    Totals totals(static_cast<int64_t>(by_head_.size()), kMetrics);
    for (size_t h = 0; h < by_head_.size(); ++h)
      for (size_t k = 0; k < kCount; ++k) {
        const Sampled& sampled = by_head_[h][k];
        if (sampled.means.empty()) continue;
        const Estimate mean = arithmetic_mean(sampled.means);
        totals.set(static_cast<int64_t>(h), kRows + k, mean.value,
                   sampled.means.size() > 1 ? mean.stderr_ : sampled.spread,
                   static_cast<int64_t>(sampled.means.size()));
      }
    return totals.tensor();
  }

  at::Tensor array(std::string_view) override { return stacked(shown_); }

  struct Sampled {
    std::vector<double> means;  // of the two groups, by sample
    double spread = 0;          // half their distance in the last sample: its standard error
  };

  uint64_t seed_;
  std::vector<at::Tensor> tiles_;      // of a short sample so far
  std::unique_ptr<SampledRows> rows_;  // of a long one
  std::vector<std::array<Sampled, kCount>> by_head_;
  std::vector<std::vector<double>> shown_;  // singular values of the shown sample, by head
};

}  // namespace

extern const Lens lens_pattern_spectra{
    .name = "pattern_spectra",
    .summary = "Rank of the attention matrices, and what one application can keep",
    .cost = "about 0.08 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}},
    .metrics =
        {{.name = "effective_rank",
          .formula = "exp(-sum p log p), p = sigma / sum sigma, of the attention matrix A",
          .meaning = "1: every query attends alike; T: a permutation or the identity"},
         {.name = "effective_rank_rel",
          .formula = "effective_rank / T",
          .meaning = "share of the rank there could be",
          .high = 1.0},
         {.name = "stable_rank",
          .formula = "sum sigma^2 / sigma_1^2 of A",
          .meaning = "energy in units of the strongest direction; 1 is one shared pattern"},
         {.name = "numerical_rank",
          .formula = "count of sigma > T eps sigma_1, eps of the pass's dtype",
          .meaning = "rank above rounding; causal matrices are nearly always full"},
         {.name = "spectral_gap",
          .formula = "sigma_1 - sigma_2 of A",
          .meaning = "large: one direction dominates"},
         {.name = "mixing",
          .formula = "||(I - J) A||_2, J = 1 1^T / T",
          .meaning = "how much of the differences between tokens one application can keep; 0 keeps none"},
         {.name = "mixing_uniform",
          .formula = "||(I - J) U||_2, U uniform attention under the same mask",
          .meaning = "the floor under mixing: 0 without a mask, above 0 for a causal one"},
         {.name = "effective_rank_rows256",
          .formula = "effective_rank of 256 sampled rows, mean of two disjoint groups (T > 512)",
          .meaning = "at most 256, so below the full matrix's; stderr over samples, of the groups if one"},
         {.name = "effective_rank_rel_rows256",
          .formula = "effective_rank_rows256 / 256",
          .meaning = "share of the rank 256 rows could have; stderr over samples, of the groups if one",
          .high = 1.0},
         {.name = "stable_rank_rows256",
          .formula = "stable_rank of 256 sampled rows, mean of two disjoint groups (T > 512)",
          .meaning = "close to the full matrix's where it is small; stderr as above"},
         {.name = "numerical_rank_rows256",
          .formula = "numerical_rank of 256 sampled rows, mean of two disjoint groups (T > 512)",
          .meaning = "at most 256; stderr as above"},
         {.name = "spectral_gap_rows256",
          .formula = "sqrt(T/256) (sigma_1 - sigma_2) of 256 sampled rows, mean of two groups (T > 512)",
          .meaning = "large: one direction dominates; stderr as above"},
         {.name = "mixing_rows256",
          .formula = "sqrt(T/256) ||(I - J) A||_2 of 256 sampled rows, mean of two groups (T > 512)",
          .meaning = "an estimate, high for a flat spectrum; stderr over samples, of the groups if one"}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<PatternSpectra>(context);
    },
    .arrays = {"spectrum"}};

}  // namespace rankscope
