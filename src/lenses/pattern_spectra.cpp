// Spectra of attention matrices, and how much of the differences between tokens one application can keep.
// Matrices up to 512 long are read whole. Longer ones are read through two disjoint groups of 256 rows,
// scaled to the full length; their metrics have names of their own, because 256 rows cannot show a rank above
// 256. Where the kind of attention cannot have every rank, the most it can have stands beside the rank.
#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <optional>

#include "attention/ceiling.h"
#include "base/stats.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "lenses/support/on_device.h"
#include "lenses/support/sampled_rows.h"
#include "lenses/support/uniform.h"
#include "spectral/batch.h"
#include "spectral/on_device.h"

namespace rankscope {
namespace {

// As they are declared below: six numbers of whole matrices, the floor, the same six of sampled rows, and the
// ceiling.
constexpr size_t kCount = 6, kMixingUniform = 6, kRows = 7, kCeiling = 13, kPatternSpectraMetrics = 14;

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

// The same where the tensors are: p [.., rows, keys] to numbers [.., kCount] and singular values.
struct MeasuredThere {
  at::Tensor numbers, sigma;
};

MeasuredThere pattern_spectra_there(const at::Tensor& p, int64_t queries) {
  const int64_t m = p.size(-2), n = p.size(-1), full = std::min(m, n);
  const double scale = std::sqrt(static_cast<double>(queries) / static_cast<double>(m));
  const SigmaPair found = singular_values(centered_rows(p.detach().reshape({-1, m, n})), 1);
  const at::Tensor rank = effective_rank_of(found.plain);
  const at::Tensor tolerance =
      at::full({}, static_cast<double>(std::max(m, n)) * epsilon_of(p), rank.options());
  const at::Tensor numbers =
      at::stack({rank, rank / static_cast<double>(full), stable_rank_of(found.plain),
                 numerical_rank_of(found.plain, tolerance), scale * spectral_gap_of(found.plain),
                 scale * found.centered.select(1, 0)},
                1);
  std::vector<int64_t> shape(p.sizes().begin(), p.sizes().end() - 1);
  shape.back() = -1;
  return {numbers.view(shape), found.plain.view(shape)};
}

class PatternSpectra : public Measurement, public LongMeasurement {
 public:
  explicit PatternSpectra(const LensContext& context) : seed_(context.seed) {
    if (context.layer < 0 || context.layer >= context.spec.depth()) return;
    const BlockSpec& block = context.spec.blocks[static_cast<size_t>(context.layer)];
    if (const BranchSpec* own = block.attention_branch()) own_ = *own->attention();
    if (const BranchSpec* cross = cross_branch(block)) cross_ = *cross->attention();
  }

 private:
  // By head, the largest rank that the law of its kind allows; nothing where there is no law.
  std::vector<double> ceilings(const TileView& view) const {
    const std::optional<AttentionSpec>& spec = view.keys != nullptr ? cross_ : own_;
    std::vector<double> out;
    for (int64_t h = 0; spec && h < view.tile.size(1); ++h) {
      const auto most = rank_ceiling(*spec, h, std::min(view.place.queries, view.tile.size(3)));
      if (!most) return {};
      out.push_back(static_cast<double>(*most));
    }
    return out;
  }

  at::Tensor tile(const TileView& view) override {
    if (stays_on_device(view.tile, true)) return tile_there(view);
    const int64_t samples = view.tile.size(0), rows = view.tile.size(2), queries = view.place.queries;
    Numbers numbers(samples, view.tile.size(1), kPatternSpectraMetrics);
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
    const std::vector<double> most = ceilings(view);
    for (int64_t s = 0; s < samples; ++s) {
      numbers.of(s)[kMixingUniform] = uniform;
      for (size_t h = 0; h < most.size(); ++h) numbers.of(s, static_cast<int64_t>(h))[kCeiling] = most[h];
    }
    return numbers.tensor();
  }

  at::Tensor tile_there(const TileView& view) {
    const int64_t rows = view.tile.size(2), queries = view.place.queries;
    at::Tensor p;
    if (queries > kLongestWhole) {
      add_rows_there(view);
    } else if (rows == queries) {
      p = view.tile;
    } else {
      if (view.place.first_row == 0) tiles_.clear();
      tiles_.push_back(view.tile.detach().clone());
      if (view.last()) p = at::cat(tiles_, 2);
    }
    if (!view.last()) return {};
    tiles_.clear();
    const auto options = view.tile.options().dtype(at::kDouble);
    const at::Tensor out =
        at::full({1, view.tile.size(0), view.tile.size(1) + 1, kPatternSpectraMetrics}, kNone, options);
    if (p.defined()) {
      const MeasuredThere measured = pattern_spectra_there(p, queries);
      out[0].narrow(1, 0, p.size(1)).narrow(2, 0, kCount).copy_(measured.numbers);
      for (int64_t s = 0; s < p.size(0); ++s)
        if (sample(view, s) == kShownSample) shown_there_ = measured.sigma[s];
    }
    out[0]
        .select(1, view.tile.size(1))
        .select(1, kMixingUniform)
        .fill_(mixing_of_uniform({view.tile.size(3), view.causal, view.window, queries}));
    const std::vector<double> most = ceilings(view);  // filled in: a copy would wait for the device
    for (size_t h = 0; h < most.size(); ++h)
      out[0].select(1, static_cast<int64_t>(h)).select(1, kCeiling).fill_(most[h]);
    return out;
  }

  void add_rows_there(const TileView& view) {
    const int64_t queries = view.place.queries;
    if (view.place.first_row == 0) rows_ = std::make_unique<SampledRows>(seed_, sample(view, 0), queries);
    rows_->add(view.tile[0], view.place.first_row);
    if (!view.last()) return;
    add_groups_there(pattern_spectra_there(rows_->group(0), queries).numbers,
                     pattern_spectra_there(rows_->group(1), queries).numbers);
    rows_.reset();
  }

  void add_groups_there(const at::Tensor& a, const at::Tensor& b) {  // [H, kCount]
    means_there_.push_back(0.5 * (a + b));
    spread_there_ = 0.5 * (a - b).abs();
  }

  // The sampled rows of a few heads at a time, so that those of all are never held.
  at::Tensor long_pattern(const LongView& view) override {
    const LongPattern& pattern = view.pattern;
    const int64_t heads = pattern.heads(), queries = view.place.queries,
                  at_once = view.heads_at_once(kGroupRows);
    for (int64_t s = 0; s < pattern.samples(); ++s) {
      const auto wanted = draw_rows(seed_, sample(view.packing, view.place.first_sample + s), queries);
      std::array<std::vector<Measured>, kGroups> here;
      std::array<std::vector<at::Tensor>, kGroups> there;
      for (int64_t h = 0; h < heads; h += at_once)
        for (size_t g = 0; g < kGroups; ++g) {
          const at::Tensor index = at::tensor(wanted[g], at::kLong),
                           p = pattern.rows(s, 1, h, std::min(at_once, heads - h), index)[0];
          if (stays_on_device(p, true)) {
            there[g].push_back(pattern_spectra_there(p, queries).numbers);
            continue;
          }
          for (Measured& one : measure_each(p, queries)) here[g].push_back(std::move(one));
        }
      there[0].empty() ? add_groups(here) : add_groups_there(at::cat(there[0]), at::cat(there[1]));
    }
    const at::Tensor out =
        at::full({1, pattern.samples(), heads + 1, kPatternSpectraMetrics}, kNone, pattern.mass().options());
    out[0]
        .select(1, heads)
        .select(1, kMixingUniform)
        .fill_(mixing_of_uniform({pattern.keys(), view.causal, view.window, queries}));
    return out;
  }

  // Means over samples, with their errors; of one sample the error is that of its groups.
  at::Tensor finish_there() const {
    const at::Tensor all = at::stack(means_there_);  // [samples, H, kCount]
    const at::Tensor n = all.isnan().logical_not().sum(0).to(at::kDouble), mean = all.nansum(0) / n;
    const at::Tensor squares = (all - mean).square().nansum(0);
    const at::Tensor error = at::where(n > 1, (squares / (n - 1) / n).sqrt(), spread_there_);
    const at::Tensor before = at::full({n.size(0), static_cast<int64_t>(kRows)}, kNone, n.options());
    const at::Tensor behind = before.narrow(1, 0, kPatternSpectraMetrics - kCeiling);
    const auto wide = [&](const at::Tensor& x) { return at::cat({before, x, behind}, 1); };
    return head_totals(wide(mean), wide(error), wide(n), {});
  }

  static int64_t sample(const Packing& packing, int64_t s) { return packing.samples[static_cast<size_t>(s)]; }
  static int64_t sample(const TileView& view, int64_t s) {
    return sample(view.packing, view.place.first_sample + s);
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
    add_groups(groups);
  }

  void add_groups(const std::array<std::vector<Measured>, kGroups>& groups) {
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
    if (!means_there_.empty()) return finish_there();
    Totals totals(static_cast<int64_t>(by_head_.size()), kPatternSpectraMetrics);
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

  at::Tensor array(std::string_view) override {
    return shown_there_.defined() ? shown_there_ : stacked(shown_);
  }

  struct Sampled {
    std::vector<double> means;  // of the two groups, by sample
    double spread = 0;          // half their distance in the last sample: its standard error
  };

  uint64_t seed_;
  std::optional<AttentionSpec> own_, cross_;  // of the block, where it has them
  std::vector<at::Tensor> tiles_;             // of a short sample so far
  std::unique_ptr<SampledRows> rows_;         // of a long one
  std::vector<std::array<Sampled, kCount>> by_head_;
  std::vector<std::vector<double>> shown_;  // singular values of the shown sample, by head
  std::vector<at::Tensor> means_there_;     // on the device: [H, kCount] a long sample
  at::Tensor spread_there_, shown_there_;   // of the last long sample; singular values of the shown one
};

}  // namespace

extern const Lens lens_pattern_spectra{
    .name = "pattern_spectra",
    .summary = "Rank of the attention matrices, and what one application can keep",
    .cost = "about 0.08 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}, {"attn.hook_mixer", SiteForm::tiles}},
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
          .formula = "sigma_1 - sigma_2 of A (of one token, sigma_1: 1)",
          .meaning = "large: one direction dominates"},
         {.name = "mixing",
          .formula = "||(I - J) A||_2, J = 1 1^T / T",
          .meaning = "how much of the differences between tokens one application can keep; 0 keeps none"},
         {.name = "mixing_uniform",
          .formula = "||(I - J) U||_2, U uniform attention under the same mask",
          .meaning = "beside mixing: 0 without a mask, above 0 for a causal one"},
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
          .meaning = "an estimate, high for a flat spectrum; stderr over samples, of the groups if one"},
         {.name = "rank_ceiling",
          .formula = "the largest rank that the kind of attention allows a T x T matrix, by its law",
          .meaning = "beside numerical_rank, which cannot be above it; only for kinds that have a law"}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<PatternSpectra>(context);
    },
    .arrays = {"spectrum"}};

}  // namespace rankscope
