// How differently those who read the tokens see them: the units of an MLP, or the channels of the stream.
// Each unit is compared with itself alone, so its scale, its bias and its place among the others do not
// matter, nor do the gain and bias of the norm before it.
#include <ATen/ATen.h>

#include <cmath>
#include <optional>

#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"
#include "lenses/support/some_tokens.h"
#include "model/sites.h"
#include "spectral/batch.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

enum ReadersMetric : int64_t {
  kReadSpread,
  kUnitRank,
  kDifference,
  kReadersMetrics
};  // as they are declared below

constexpr int64_t kReadGroups = 32;    // of samples, left out in turn for the error of the spread
constexpr int64_t kMostRead = 32;      // of a longer sample, all over it: no number here needs more
constexpr double kFarFromMedian = 20;  // a token this many medians away does not speak for the rest
constexpr double kPasses = 1e-3;       // a unit whose activation lets less of it through writes nothing
constexpr std::string_view kUnits = "mlp.hook_pre", kGated = "mlp.hook_pre_linear";

/// 1 / v where v is more than rounding leaves of numbers of this mean square, else 0.
at::Tensor inverse(const at::Tensor& v, const at::Tensor& mean_square, double epsilon) {
  const double floor = 64 * epsilon * epsilon;  // (8 epsilon)^2: a few roundings of each number
  return at::where(v > mean_square * floor, v.reciprocal(), at::zeros_like(v));
}

/// What S samples leave behind: sums over their tokens, by unit.
struct SampleSums {
  at::Tensor count;                 // [S, 1]
  at::Tensor sum, squares, within;  // [S, U]; within: squares about the sample's (causal: the prefix's) mean
  at::Tensor read, passed;          // [S, U] sums of squares in front of the activation and behind it
  at::Tensor rank, difference;      // [S]
};

/// Which units [.., U] write what they read; all where none does.
at::Tensor live(const at::Tensor& read, const at::Tensor& passed) {
  const at::Tensor some = passed > kPasses * kPasses * read;
  return some.logical_or(some.any(-1, true).logical_not());
}

/// Tokens [S, n, U]. In their own precision, sums in double. The mean is taken off before anything is
/// squared.
SampleSums look(const at::Tensor& rows, bool causal, std::optional<Activation> activation) {
  const double epsilon = epsilon_of(rows);
  const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
  // Tokens far from the rest, every unit over its own variance.
  const at::Tensor first_mean = rows.mean(1, true), c2 = (rows - first_mean).square_();
  const at::Tensor variance = c2.mean(1),
                   inv = inverse(variance, variance + first_mean.squeeze(1).square(), epsilon);
  const at::Tensor distance = at::bmm(c2, inv.unsqueeze(2)).squeeze(2);  // [S, n]
  // Equal tokens differ by rounding alone, of which none is far. In single units, whose sums may cancel, it
  // may look like more.
  const double rounding = 16 * epsilon;
  const at::Tensor alike =
      wide(variance).sum(1, true) <= rounding * rounding * wide(rows.square().mean(1)).sum(1, true);
  const at::Tensor w = (distance <= kFarFromMedian * std::get<0>(distance.median(1, true)))
                           .logical_or(alike)
                           .to(rows.scalar_type()),
                   kept = w.unsqueeze(2);
  const at::Tensor count = w.sum(1, true);
  const at::Tensor mean = at::bmm(w.unsqueeze(1), rows).squeeze(1) / count,
                   c = (rows - mean.unsqueeze(1)).mul_(kept);
  const at::Tensor squares = wide(c.square().sum(1));

  SampleSums out;
  out.count = wide(count);
  out.sum =
      wide(mean) * out.count;  // what rounding leaves in the sum of c is of the size of that in the mean
  out.squares = squares + wide(mean).square() * out.count;
  out.within = squares;
  if (causal) {
    const at::Tensor prefix = c.cumsum(1) / w.cumsum(1).clamp_min(1).unsqueeze(2);
    out.within = wide((c - prefix.mul_(kept)).square_().sum(1));
  }
  const at::Tensor own = squares / out.count, all = out.squares / out.count;
  const at::Tensor scale = inverse(own, all, epsilon).sqrt();
  const auto size_of = [&](const at::Tensor& x) { return wide((x.square() * kept).sum(1)); };
  out.read = size_of(rows);
  out.passed = activation ? size_of(apply_activation(rows.clone(), *activation)) : out.read;
  const at::Tensor writes = live(out.read, out.passed);
  const at::Tensor a = c * (scale * writes).to(c.scalar_type()).unsqueeze(1),
                   gram = wide(at::bmm(a, a.transpose(1, 2)));
  // Not defined where nothing differs by more than rounding.
  out.rank = (gram.diagonal(0, 1, 2).sum(1).square() / gram.square().sum(at::IntArrayRef{1, 2}))
                 .masked_fill(alike.squeeze(1), kNone);
  // A unit that is one number whatever it reads (its weights are zero) reads nothing, and says nothing of the
  // rest; nor does one that lets nothing through.
  const at::Tensor far = kept == 0;
  const at::Tensor differs =
      rows.masked_fill(far, -INFINITY).amax(1) != rows.masked_fill(far, INFINITY).amin(1);
  at::Tensor counts = differs.logical_and(writes);
  counts = counts.logical_or(counts.any(1, true).logical_not().logical_and(writes));
  const at::Tensor each = at::where(counts, (own / all).sqrt(), at::full_like(own, kNone));
  const at::Tensor at =
      at::floor_divide(counts.sum(1, true) * 9 + 9, 10) - 1;            // nine of ten lie there or below
  out.difference = std::get<0>(each.sort(1)).gather(1, at).squeeze(1);  // NaN is behind all numbers
  return out;
}

class Readers : public Measurement {
 public:
  explicit Readers(const LensContext& context) : causal_(context.spec.causal()) {
    const auto& blocks = context.spec.blocks;
    const bool inside = context.layer >= 0 && context.layer < context.spec.depth();
    const bool last = context.layer + 1 == context.spec.depth() && !context.spec.final_norm.there();
    const BranchSpec* mlp = inside ? blocks[static_cast<size_t>(context.layer)].mlp_branch() : nullptr;
    units_ = within_block(context.site) == kUnits;
    if (units_ && mlp != nullptr) activation_ = mlp->mlp()->activation;
    // Experts have no units that every token is read by.
    wanted_ = units_ || within_block(context.site) == kGated || !inside || last ||
              !site_named(kUnits).present(context.spec, blocks[static_cast<size_t>(context.layer)]);
  }

 private:
  at::Tensor whole(const WholeView& view) override {
    const int64_t samples = view.packing.count(), units = view.x.size(1);
    if (!wanted_) return {};  // the block has units, and they tell more
    const auto wide = view.x.options().dtype(at::kDouble);
    if (!count_.defined()) {
      count_ = at::zeros({kReadGroups}, wide);
      sum_ = at::zeros({kReadGroups, units}, wide);
      squares_ = at::zeros_like(sum_);
      within_ = at::zeros_like(sum_);
      read_ = at::zeros({units}, wide);
      passed_ = at::zeros_like(read_);
      filled_.assign(kReadGroups, false);
    }
    const at::Tensor numbers = at::full({2, samples, 1, kReadersMetrics}, kNone, wide);
    const at::Tensor content = numbers[1].select(1, 0);  // [samples, metrics]
    for (const SomeTokens& some :
         some_tokens(view.packing, Take::content, kMostRead, view.x, kMostRead * view.x.size(1))) {
      const SampleSums found = look(some.of(view.x), causal_, activation_);
      const at::Tensor groups = some.by_group(kReadGroups);
      count_ += groups.matmul(found.count).squeeze(1);
      sum_ += groups.matmul(found.sum);
      squares_ += groups.matmul(found.squares);
      within_ += groups.matmul(found.within);
      read_ += found.read.sum(0);
      passed_ += found.passed.sum(0);
      for (const int64_t number : some.names) filled_[static_cast<size_t>(number % kReadGroups)] = true;
      samples_ += some.count();
      content.select(1, kUnitRank).index_copy_(0, some.samples, found.rank);
      content.select(1, kDifference).index_copy_(0, some.samples, found.difference);
    }
    epsilon_ = epsilon_of(view.x);
    return numbers;
  }

  /// Mean over units of within / total, for each row of sums.
  at::Tensor spread(const at::Tensor& count, const at::Tensor& sum, const at::Tensor& squares,
                    const at::Tensor& within) const {
    const at::Tensor n = count.unsqueeze(1), mean_square = squares / n;
    const at::Tensor total = (mean_square - (sum / n).square()).clamp_min(0);
    const at::Tensor inv = inverse(total, mean_square, epsilon_) * live(read_, passed_);
    const at::Tensor units = (inv > 0).to(at::kDouble).sum(1);
    return (within / n * inv).sum(1) / units.clamp_min(1);  // 0 where no unit differs anywhere
  }

  at::Tensor finish() override {
    if (samples_ == 0) return {};
    const at::Tensor count = count_.sum(0, true), sum = sum_.sum(0, true), squares = squares_.sum(0, true),
                     within = within_.sum(0, true);
    at::Tensor out = at::full({1, kReadersMetrics, 3}, kNone, count.options());
    out[0][kReadSpread][0] = spread(count, sum, squares, within)[0];
    out[0][kReadSpread][2] = static_cast<double>(samples_);
    std::vector<int64_t> kept;
    for (int64_t g = 0; g < kReadGroups; ++g)
      if (filled_[static_cast<size_t>(g)]) kept.push_back(g);
    if (kept.size() > 1) {
      const at::Tensor at = sent(at::tensor(kept, at::kLong), count.device());
      const at::Tensor without =
          spread(count - count_.index_select(0, at), sum - sum_.index_select(0, at),
                 squares - squares_.index_select(0, at), within - within_.index_select(0, at));
      const double m = static_cast<double>(kept.size());
      out[0][kReadSpread][1] = ((without - without.mean()).square().sum() * ((m - 1) / m)).sqrt();
    }
    return out;
  }

  bool causal_, units_ = false, wanted_ = true;
  std::optional<Activation> activation_;  // of an MLP's units
  double epsilon_ = 0;
  int64_t samples_ = 0;
  at::Tensor count_, sum_, squares_, within_;  // [groups], [groups, U]
  at::Tensor read_, passed_;                   // [U]
  std::vector<bool> filled_;
};

}  // namespace

extern const Lens lens_readers{
    .name = "readers",
    .summary = "How differently those who read the tokens see them: what the verdict on collapse reads",
    .cost = "about 0.1 forward passes at T = 128",
    .sites = {{kUnits, SiteForm::whole},
              {kGated, SiteForm::whole},             // what a gate multiplies
              {"hook_resid_post", SiteForm::whole},  // of blocks without such units, and at the end
              {"ln_final.hook_normalized", SiteForm::whole}},
    .metrics =
        {{.name = "spread",
          .formula =
              "mean over units of E (x - m)^2 / E (x - mu)^2, m the mean over the sample's tokens (causal: "
              "over those up to this one), mu that over all samples; at most 32 content tokens of a sample, "
              "without those whose squared distance from the sample's mean, every unit over its variance in "
              "the "
              "sample, is over 20 times the median one; of an MLP without units whose activation passes less "
              "than 0.001 of what "
              "they read (root mean squares), unless it is so of all; 0 where nothing differs at all",
          .meaning = "0: the tokens of a sample are all alike, though samples differ; tokens drawn "
                     "independently of their sample give 1 - 1/n",
          .high = 1.0 + 1e-9,
          .version = 4},
         {.name = "unit_rank",
          .formula = "(tr K)^2 / ||K||_F^2, K = A A^T, A the units of a sample's tokens, each without its "
                     "mean and over its standard deviation; the tokens of spread, and its units by what "
                     "passes in this sample; none where tokens differ by rounding alone",
          .meaning = "directions in which the tokens of a sample differ: 1 is dimensional collapse",
          .low = 1.0 - 1e-5,
          .version = 4},
         {.name = "unit_sd_rel_p90",
          .formula =
              "the least number that sd / rms over the tokens of a sample does not exceed in nine units of "
              "ten; the tokens and units of unit_rank, without units that are one number for all tokens, "
              "unless every unit is",
          .meaning = "0: every unit reads the same from every token; 1: some have no part common to all",
          .high = 1.0 + 1e-5}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Readers>(context);
    }};

}  // namespace rankscope
