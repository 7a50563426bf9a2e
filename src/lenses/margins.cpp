// Attention sinks by their margin: m = log(a / (1 - a)) + log(t - 1) for a query that sees t keys and gives a
// to one of them. Uniform attention has margin 0 at any length, so texts of different lengths can be
// compared.
//
// In each sample a head's key is the one that receives most beside uniform attention, among all that a
// quarter of the queries see. The largest of many is large by chance: the same is done with every query's
// keys in random order, and that is the null.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "base/some_places.h"
#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/mask.h"
#include "lenses/support/on_device.h"
#include "lenses/support/tile_rows.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

enum MarginsMetric : int64_t {  // as they are declared below
  kMargin,
  kNull,
  kSlope,
  kScatter,
  kMass,
  kSeen,
  kFirst,
  kLast,
  kSpecial,
  kKeyPosition,
  kPositionShare,
  kKeyToken,
  kTokenShare,
  kMarginsMetrics
};

constexpr int64_t kMarginQueries = 64;  // of longer samples, all over them
constexpr int64_t kNullEvery = 8;       // the null is taken of every eighth sample
constexpr double kLeast = 1e-30;        // attention below this is rounding
constexpr double kLeastRest = 0x1p-44;  // so is what all other keys have, as a difference of sums
constexpr int64_t kNoKey = -1;          // in samples where no key is seen by enough queries

/// What a head's strongest key is and how strong, from patterns p [S, H, Q, K]. `sees` [Q, K], `keys` [Q].
struct Strongest {
  at::Tensor key, margins, median;  // [S, H], [S, H, Q] (NaN: does not see it), [S, H]
  at::Tensor bounds;                // [S, H, Q] true where the margin is only a bound: the rest is rounding
  at::Tensor mass;                  // [S, H] mean attention of the queries that see it
  at::Tensor share;                 // [S, H] which part of the queries that have a choice these are
};

Strongest strongest(const at::Tensor& p, const at::Tensor& sees, const at::Tensor& keys) {
  const at::Tensor chooses = sees & (keys > 1).unsqueeze(1);  // [Q, K]
  const at::Tensor queries = chooses.sum(0).to(at::kDouble);  // [K]
  const double enough = std::max(2.0, std::floor(static_cast<double>(p.size(2)) / 4));
  // Attention is zero where a query does not see, so the rows' weights alone are enough: t where it has a
  // choice.
  const at::Tensor rows = (keys * (keys > 1)).to(p.scalar_type());  // [Q]
  const at::Tensor ratio =
      at::matmul(rows.unsqueeze(0), p).squeeze(2).to(at::kDouble) / queries;  // [S, H, K]
  const at::Tensor able = queries >= enough;
  const at::Tensor score = at::where(able, ratio, at::full_like(ratio, -1.0));
  const auto [best, key] = score.max(-1);
  const at::Tensor column = key.unsqueeze(-1).unsqueeze(-1).expand({-1, -1, p.size(2), 1});
  const at::Tensor a = p.gather(3, column).squeeze(-1).to(at::kDouble);  // [S, H, Q]
  // 1 - a would be rounding of a's last digit where a is nearly 1. What all keys have, summed in double, is
  // not; what is missing of 1 beyond rounding went to a sink that is no key.
  const double epsilon = epsilon_of(p);
  const at::Tensor all = p.sum(-1, false, at::kDouble), missing = 1 - all,
                   rest = all - a + missing * (missing > 16 * epsilon);
  const at::Tensor odds = a.clamp_min(kLeast).log() - rest.clamp_min(kLeastRest).log();
  const at::Tensor seen = chooses.t().index_select(0, key.flatten()).view_as(a);
  const at::Tensor none = at::full_like(a, kNone);
  at::Tensor margins = at::where(seen, odds + (keys - 1).clamp_min(1).log(), none);
  margins = at::where((best < 0).unsqueeze(-1), none, margins);
  const at::Tensor mass = at::where(seen, a, none).nanmean(-1);
  const at::Tensor share = seen.to(at::kDouble).sum(-1) / (keys > 1).sum().clamp_min(1);
  const at::Tensor nowhere = at::full_like(mass, kNone);
  return {key,
          margins,
          std::get<0>(margins.nanmedian(-1)),
          rest <= kLeastRest,
          at::where(best < 0, nowhere, mass),
          at::where(best < 0, nowhere, share)};
}

class Margins : public Measurement, public LongMeasurement {
 public:
  explicit Margins(uint64_t seed) : seed_(seed) {}

 private:
  at::Tensor long_pattern(const LongView& view) override {
    const int64_t heads = view.pattern.heads();
    const std::vector<int64_t> some = some_places(view.place.queries, kMarginQueries);
    const at::Tensor index = at::tensor(some, at::kLong);
    const int64_t at_once = view.heads_at_once(index.size(0));
    const size_t before = positions_.size();
    std::vector<at::Tensor> parts;
    for (int64_t h = 0; h < heads; h += at_once) {
      const at::Tensor p =
          view.pattern.rows(0, view.pattern.samples(), h, std::min(at_once, heads - h), index);
      const at::Tensor numbers = measure(p, some, view.with(p));
      parts.push_back(numbers.narrow(2, 0, h + at_once < heads ? p.size(1) : p.size(1) + 1));
    }
    for (std::vector<at::Tensor>* seen : {&positions_, &tokens_}) {  // [S, heads of a part] to [S, H]
      if (seen->size() <= before) continue;
      const at::Tensor all =
          at::cat(std::vector<at::Tensor>(seen->begin() + static_cast<int64_t>(before), seen->end()), 1);
      seen->resize(before);
      seen->push_back(all);
    }
    return at::cat(parts, 2);
  }

  at::Tensor tile(const TileView& view) override {
    const std::vector<int64_t> some = some_places(view.place.queries, kMarginQueries);
    if (view.place.first_row == 0) kept_.clear();
    if (const TileRows here = rows_of(view, some); !here.queries.empty()) kept_.push_back(here.rows);
    if (!view.last()) return {};
    const at::Tensor p = kept_.size() == 1 ? kept_.front() : at::cat(kept_, 2);
    kept_.clear();
    return measure(p, some, view);
  }

  at::Tensor measure(const at::Tensor& p, const std::vector<int64_t>& queries, const TileView& view) {
    const int64_t samples = p.size(0), heads = p.size(1), Q = p.size(2), K = p.size(3);
    const Mask mask{K, view.causal, view.window, view.place.queries};
    std::vector<double> first(static_cast<size_t>(Q)), end(static_cast<size_t>(Q));
    for (int64_t q = 0; q < Q; ++q) {
      first[static_cast<size_t>(q)] = static_cast<double>(mask.first_key(queries[static_cast<size_t>(q)]));
      end[static_cast<size_t>(q)] = static_cast<double>(mask.end_key(queries[static_cast<size_t>(q)]));
    }
    const auto wide = at::TensorOptions().dtype(at::kDouble);
    const at::Tensor from = sent(at::tensor(first, wide), p.device()),
                     to = sent(at::tensor(end, wide), p.device()),
                     index = at::arange(K, wide.device(p.device())), keys = to - from;
    const at::Tensor sees =
        (index.unsqueeze(0) >= from.unsqueeze(1)) & (index.unsqueeze(0) < to.unsqueeze(1));
    const Strongest found = strongest(p, sees, keys);

    at::Tensor numbers = at::full({1, samples, heads + 1, kMarginsMetrics}, kNone, found.median.options());
    const at::Tensor out = numbers[0].narrow(1, 0, heads);  // [S, H, metrics]
    const auto put = [&](MarginsMetric m, const at::Tensor& value) { out.select(-1, m).copy_(value); };
    put(kMargin, found.median);
    put(kMass, found.mass);
    put(kSeen, found.share);
    // Least squares of the margin on log t over the queries that see the key; not defined where t is one
    // number, and where a margin is only a bound.
    const at::Tensor known = found.margins == found.margins, weight = known.to(at::kDouble),
                     count = weight.sum(-1, true), bounded = (known & found.bounds).any(-1),
                     m = at::where(known, found.margins, at::zeros_like(weight));
    const at::Tensor log_t = keys.clamp_min(1).log().expand_as(m),
                     t_mean = (log_t * weight).sum(-1, true) / count, t = (log_t - t_mean) * weight,
                     var = t.square().sum(-1);
    put(kSlope, at::where((var > 1e-9 * count.squeeze(-1)) & bounded.logical_not(), (t * m).sum(-1) / var,
                          at::full_like(var, kNone)));
    const at::Tensor off = (found.margins - found.median.unsqueeze(-1)).abs();
    put(kScatter, std::get<0>(off.nanmedian(-1)));
    const at::Tensor valid = found.median == found.median;
    const auto share = [&](MarginsMetric k, const at::Tensor& is) {
      put(k, at::where(valid, is.to(at::kDouble), at::full_like(found.median, kNone)));
    };
    share(kFirst, found.key == 0);
    share(kLast, found.key == K - 1);
    remember(found, view, samples, K, share);
    if (view.window == 0) put_null(p, sees, keys, view, out);
    return numbers;
  }

  /// The strongest key's margin when every query's keys stand in random order, of every eighth sample.
  void put_null(const at::Tensor& p, const at::Tensor& sees, const at::Tensor& keys, const TileView& view,
                const at::Tensor& out) const {
    std::vector<int64_t> places;
    std::vector<at::Tensor> chances;
    for (int64_t s = 0; s < p.size(0); ++s) {
      const int64_t number = view.packing.samples[static_cast<size_t>(view.place.first_sample + s)];
      if (number % kNullEvery != 0) continue;
      auto generator =
          at::detail::createCPUGenerator(seed_ * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(number));
      places.push_back(s);
      chances.push_back(at::rand(sees.sizes(), generator, at::TensorOptions().dtype(at::kDouble)));
    }
    if (places.empty()) return;
    const at::Tensor which = sent(at::tensor(places, at::kLong), p.device()), some = p.index_select(0, which);
    // The keys a query sees, in random order, before those that it does not.
    const at::Tensor order =
        std::get<1>((at::stack(chances).to(p.device()) + 2.0 * sees.logical_not()).sort(-1));  // [s, Q, K]
    const at::Tensor mixed = some.gather(3, order.unsqueeze(1).expand_as(some));
    out.select(-1, kNull).index_copy_(0, which, strongest(mixed, sees, keys).median);
  }

  /// Where the key stands and which token it is, for `finish`; whether it is no content.
  template <class Share>
  void remember(const Strongest& found, const TileView& view, int64_t samples, int64_t K, Share share) {
    const Packing& of = view.key_packing();
    std::vector<int64_t> special, ids;
    for (int64_t s = 0; s < samples; ++s)
      for (int64_t j = 0; j < K; ++j) {
        const auto at = static_cast<size_t>(of.offsets[static_cast<size_t>(view.place.first_sample + s)] + j);
        special.push_back(of.content[at] == 0);
        if (!of.ids.empty()) ids.push_back(of.ids[at]);
      }
    const auto of_key = [&](const std::vector<int64_t>& values) {
      return sent(at::tensor(values, at::kLong).view({samples, K}), found.key.device()).gather(1, found.key);
    };
    share(kSpecial, of_key(special));
    const at::Tensor known = found.median == found.median;
    const auto keep = [&](const at::Tensor& key) {
      return at::where(known, key, at::full_like(key, kNoKey));
    };
    positions_.push_back(keep(found.key));
    if (!ids.empty()) tokens_.push_back(keep(of_key(ids)));
  }

  at::Tensor finish() override {
    if (positions_.empty()) return {};
    const int64_t heads = positions_.front().size(1);
    at::Tensor out = at::full({heads + 1, kMarginsMetrics, 3}, kNone, at::TensorOptions().dtype(at::kDouble));
    const auto common = [&](const std::vector<at::Tensor>& seen, MarginsMetric which, MarginsMetric share) {
      if (seen.empty()) return;
      // On the host: of equals CUDA's mode is any.
      const at::Tensor all = at::cat(seen).cpu(), known = all != kNoKey,
                       n = known.sum(0);  // [samples, H], [H]
      // Samples without a key differ from all others, and lie above them: of equals the least is the mode.
      const at::Tensor others = all.max() + 1 + at::arange(all.size(0), all.options()).unsqueeze(1);
      const at::Tensor mode = std::get<0>(at::where(known, all, others).mode(0));
      const at::Tensor same = ((all == mode.unsqueeze(0)) & known).sum(0), to = out.narrow(0, 0, heads);
      const auto put = [&](MarginsMetric m, const at::Tensor& value) {
        const at::Tensor v = value.to(at::kDouble);
        to.select(1, m).select(1, 0).copy_(at::where(n > 0, v, at::full_like(v, kNone)));
        to.select(1, m).select(1, 2).copy_(n.to(at::kDouble));
      };
      put(which, mode);
      put(share, same.to(at::kDouble) / n);
    };
    common(positions_, kKeyPosition, kPositionShare);
    common(tokens_, kKeyToken, kTokenShare);
    return out.to(positions_.front().device());
  }

  uint64_t seed_;
  std::vector<at::Tensor> kept_;                // the tiles of these samples so far
  std::vector<at::Tensor> positions_, tokens_;  // [S, H] a view
};

}  // namespace

extern const Lens lens_margins{
    .name = "margins",
    .summary = "Attention sinks, comparable between lengths",
    .cost = "about 0.06 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}},
    .metrics =
        {{.name = "sink_margin",
          .formula =
              "median over queries (at most 64 of a sample; the lower of two in the middle) of "
              "log(a / (1 - a)) + log(t - 1), 1 - a taken as 2^-44 at least, a what the query gives the "
              "strongest key, t > 1 the keys it "
              "sees; the strongest key has the largest mean of a t over the queries that see it, among keys "
              "that a quarter of all queries read see (rounded down, and two at least)",
          .meaning = "nats above uniform attention, at any length: 0 uniform, 3 a sink",
          .low = -1e3,
          .high = 1e3,
          .version = 2},
         {.name = "sink_margin_null",
          .formula = "the same with every query's keys in random order, of every eighth sample",
          .meaning = "what the largest of many keys reaches by chance",
          .low = -1e3,
          .high = 1e3,
          .version = 2},
         {.name = "sink_slope",
          .formula =
              "slope of those margins in log t over the queries, of samples where no 1 - a is below 2^-44",
          .meaning = "0: the sink keeps its margin as texts grow; -1: it keeps its logit and loses mass",
          .low = -1e9,
          .high = 1e9,
          .version = 2},
         {.name = "sink_scatter",
          .formula =
              "median distance of those margins from their median (either the lower of two in the middle)",
          .meaning = "0: half of the queries, or more, give it the same; the others may not look at it",
          .version = 2},
         {.name = "sink_key_mass",
          .formula = "mean of a over those queries",
          .meaning = "what the strongest key is given at this length of text",
          .high = 1.0 + 1e-6,
          .version = 2},
         {.name = "sink_key_seen",
          .formula = "share of the queries that see more than one key which see the strongest one",
          .meaning = "whose margins those are: causal queries see no later key, windows none far back",
          .high = 1.0 + 1e-9},
         {.name = "sink_first",
          .formula = "1 where the strongest key is the sample's first token",
          .meaning = "share of samples",
          .high = 1.0,
          .version = 2},
         {.name = "sink_last",
          .formula = "1 where the strongest key is the sample's last token",
          .meaning = "share of samples",
          .high = 1.0,
          .version = 2},
         {.name = "sink_special",
          .formula =
              "1 where the strongest key is no content: a special token, or position 0 of a causal model",
          .meaning = "share of samples",
          .high = 1.0,
          .version = 2},
         {.name = "sink_key_position",
          .formula = "the position that is the strongest key in more samples than any other (of equals the "
                     "least), of those that have one",
          .meaning = "beside sink_key_position_share",
          .version = 2},
         {.name = "sink_key_position_share",
          .formula = "share of samples in which it is",
          .meaning = "1: always the same position",
          .high = 1.0,
          .version = 2},
         {.name = "sink_key_token",
          .formula = "the token id that is the strongest key in more samples than any other (of equals the "
                     "least), of those that have one",
          .meaning = "beside sink_key_token_share",
          .version = 2},
         {.name = "sink_key_token_share",
          .formula = "share of samples in which it is",
          .meaning = "1: always the same token, wherever it stands",
          .high = 1.0,
          .version = 2}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Margins>(context.seed);
    }};

}  // namespace rankscope
