// How far the scores of a query's keys differ, in nats. What is common to all keys of a query, as a bias of
// the keys is, softmax does not see: it is taken off first.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/some_places.h"
#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/on_device.h"
#include "lenses/support/tile_rows.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

constexpr int64_t kRankEvery = 4;     // the rank is taken of every fourth sample
constexpr int64_t kMostQueries = 64;  // of a longer sample, all over it

/// Whether squares about a mean are what rounding leaves of numbers with these squares. No difference at all
/// is no rounding, and zero anyway.
at::Tensor by_rounding(const at::Tensor& squares, const at::Tensor& sizes, double epsilon) {
  return squares <= 256 * epsilon * epsilon * sizes;
}

class Logits : public Measurement, public LongMeasurement {
  at::Tensor long_pattern(const LongView& view) override {
    const int64_t heads = view.pattern.heads();
    const std::vector<int64_t> some = some_places(view.place.queries, kMostQueries);
    const at::Tensor index = at::tensor(some, at::kLong);
    const int64_t at_once = view.heads_at_once(index.size(0));
    std::vector<at::Tensor> parts;
    for (int64_t h = 0; h < heads; h += at_once) {
      const at::Tensor scores =
          view.pattern.scores(0, view.pattern.samples(), h, std::min(at_once, heads - h), index);
      squares_ = sizes_ = pairs_ = at::Tensor(), kept_.clear();
      add(scores, some, view.with(scores));
      const at::Tensor found = numbers(view.with(scores));
      parts.push_back(found.narrow(2, 0, h + at_once < heads ? scores.size(1) : scores.size(1) + 1));
    }
    return at::cat(parts, 2);
  }

  at::Tensor tile(const TileView& view) override {
    if (view.place.first_row == 0) squares_ = sizes_ = pairs_ = at::Tensor(), kept_.clear();
    const TileRows here = rows_of(view, some_places(view.place.queries, kMostQueries));
    if (!here.queries.empty()) add(here.rows, here.queries, view);
    return view.last() ? numbers(view) : at::Tensor();
  }

  at::Tensor numbers(const TileView& view) {
    // 0 / 0 where no query has a choice: not defined. What rounding leaves of equal scores is nothing.
    const at::Tensor equal = by_rounding(squares_, sizes_, epsilon_).logical_and_(pairs_ > 0),
                     rms = (squares_ / pairs_).sqrt().masked_fill(equal, 0);
    const at::Tensor none = at::full({rms.size(0), 1, 2}, kNone, rms.options());
    return at::cat({at::stack({rms, directions(view, rms)}, 2), none}, 1).unsqueeze(0);
  }

  /// The rows of these queries, [S, H, queries, keys].
  void add(const at::Tensor& tile, const std::vector<int64_t>& queries, const TileView& view) {
    epsilon_ = epsilon_of(tile);
    const bool all = !view.causal && view.window == 0;
    const at::Tensor seen = all ? at::Tensor() : tile > -std::numeric_limits<double>::infinity();
    const at::Tensor scores = all ? tile : tile.masked_fill(seen.logical_not(), 0.0);
    const at::Tensor count =
        all ? at::full({1, 1, 1}, static_cast<double>(tile.size(3)), tile.options().dtype(at::kDouble))
                  .expand({tile.size(0), tile.size(1), tile.size(2)})
            : seen.sum(-1).to(at::kDouble);  // [S, H, queries]
    const at::Tensor mean = scores.sum(-1, true) / count.unsqueeze(-1).clamp_min(1).to(scores.scalar_type());
    at::Tensor centred = scores - mean;
    if (!all) centred.mul_(seen);
    const at::Tensor choice = (count > 1).to(at::kDouble);
    const at::Tensor squares = (centred.square_().sum(-1).to(at::kDouble) * choice).sum(-1),
                     pairs = (count * choice).sum(-1);  // [S, H]
    const at::Tensor sizes = (scores.square().sum(-1).to(at::kDouble) * choice).sum(-1);
    squares_ = squares_.defined() ? squares_ + squares : squares;
    sizes_ = sizes_.defined() ? sizes_ + sizes : sizes;
    pairs_ = pairs_.defined() ? pairs_ + pairs : pairs;
    // A masked score is none, so where queries do not see all keys, the later half of the queries and the
    // earlier half of the keys are read for the rank.
    const int64_t from = view.causal ? view.place.queries / 2 : 0,
                  skip = std::ranges::lower_bound(queries, from) - queries.begin();
    const std::vector<int64_t> some = read_for_rank(view, tile.size(0));
    if (some.empty() || view.window > 0 || skip >= tile.size(2)) return;
    kept_.push_back(scores.slice(2, skip)
                        .slice(3, 0, view.causal ? from : tile.size(3))
                        .index_select(0, sent(at::tensor(some, at::kLong), tile.device())));
  }

  static std::vector<int64_t> read_for_rank(const TileView& view, int64_t samples) {
    std::vector<int64_t> out;
    for (int64_t s = 0; s < samples; ++s)
      if (view.packing.samples[static_cast<size_t>(view.place.first_sample + s)] % kRankEvery == 0)
        out.push_back(s);
    return out;
  }

  /// Participation ratio of the kept scores without their row means, [S, H]; NaN for samples that are not
  /// read.
  at::Tensor directions(const TileView& view, const at::Tensor& like) {
    at::Tensor out = at::full_like(like, kNone);
    if (kept_.empty()) return out;
    const at::Tensor kept = at::cat(kept_, 2);  // [some samples, H, queries, keys]
    kept_.clear();
    if (kept.size(2) < 2 || kept.size(3) < 2) return out;
    const at::Tensor c = kept - kept.mean(-1, true), gram = at::matmul(c, c.transpose(2, 3)).to(at::kDouble);
    const at::Tensor squares = gram.diagonal(0, 2, 3).sum(-1);
    // What rounding leaves of equal scores has a rank of its own, and says nothing.
    const at::Tensor sizes = kept.square().sum(at::IntArrayRef{2, 3}, false, at::kDouble);
    const at::Tensor ratio = (squares.square() / gram.square().sum(at::IntArrayRef{2, 3}))
                                 .masked_fill(by_rounding(squares, sizes, epsilon_), kNone);
    out.index_copy_(0, sent(at::tensor(read_for_rank(view, out.size(0)), at::kLong), out.device()), ratio);
    return out;
  }

  at::Tensor squares_, sizes_, pairs_;
  double epsilon_ = 0;
  std::vector<at::Tensor> kept_;  // rows of these samples so far
};

}  // namespace

extern const Lens lens_logits{
    .name = "logits",
    .summary = "How far the scores of a query's keys differ",
    .cost = "about 0.02 forward passes at T = 128",
    .sites = {{"attn.hook_attn_scores", SiteForm::tiles}},
    .metrics = {{.name = "logit_rms",
                 .formula = "root mean square of the scores a query may see, without their mean over its "
                            "keys; at most 64 queries of a sample, and of these those that see more than one "
                            "key; none where no query does",
                 .meaning = "in nats; 0: attention is uniform, whatever the tokens, but for rounding",
                 .version = 4},
                {.name = "logit_rank",
                 .formula =
                     "(sum sigma^2)^2 / sum sigma^4 of those scores, of every fourth sample; causal: of "
                     "the later half of the queries and the earlier half of the keys; none where they differ "
                     "by rounding alone",
                 .meaning = "directions in which a head compares these tokens; 1: one feature decides",
                 .low = 1.0 - 1e-5,
                 .version = 3}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Logits>(); }};

}  // namespace rankscope
