// How far the scores of a query's keys differ, in nats. What is common to all keys of a query, as a bias of
// the keys is, softmax does not see: it is taken off first.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/table.h"
#include "lenses/lens.h"

namespace rankscope {
namespace {

constexpr int64_t kRankEvery = 4;     // the rank is taken of every fourth sample
constexpr int64_t kMostQueries = 64;  // evenly spaced ones: more than a head is wide

class Logits : public Measurement {
  at::Tensor tile(const TileView& view) override {
    const bool all = !view.causal && view.window == 0;
    const at::Tensor seen = all ? at::Tensor() : view.tile > -std::numeric_limits<double>::infinity();
    const at::Tensor scores = all ? view.tile : view.tile.masked_fill(seen.logical_not(), 0.0);
    const at::Tensor count = all ? at::full({1, 1, 1}, static_cast<double>(view.tile.size(3)),
                                            view.tile.options().dtype(at::kDouble))
                                       .expand({view.tile.size(0), view.tile.size(1), view.tile.size(2)})
                                 : seen.sum(-1).to(at::kDouble);  // [S, H, R]
    const at::Tensor mean = scores.sum(-1, true) / count.unsqueeze(-1).clamp_min(1).to(scores.scalar_type());
    at::Tensor centred = scores - mean;
    if (!all) centred.mul_(seen);
    keep_rows(scores, view);
    const at::Tensor choice = (count > 1).to(at::kDouble);
    const at::Tensor squares = (centred.square_().sum(-1).to(at::kDouble) * choice).sum(-1),
                     pairs = (count * choice).sum(-1);  // [S, H]
    if (view.place.first_row == 0)
      squares_ = squares, pairs_ = pairs;
    else
      squares_ = squares_ + squares, pairs_ = pairs_ + pairs;
    if (!view.last()) return {};
    const at::Tensor rms = (squares_ / pairs_).sqrt();  // 0 / 0 where no query has a choice: not defined
    const at::Tensor none = at::full({rms.size(0), 1, 2}, kNone, rms.options());
    return at::cat({at::stack({rms, directions(view, rms)}, 2), none}, 1).unsqueeze(0);
  }

  /// Keeps the rows that the rank is read from: evenly spaced ones. A masked score is none, so where queries
  /// do not see all keys, it is the later half of the queries and the earlier half of the keys.
  void keep_rows(const at::Tensor& scores, const TileView& view) {
    const int64_t T = view.place.queries, first = view.place.first_row, rows = scores.size(2);
    const int64_t from = view.causal ? T / 2 : 0,
                  stride = std::max<int64_t>(1, (T - from + kMostQueries - 1) / kMostQueries);
    const int64_t start = first < from ? from : from + (first - from + stride - 1) / stride * stride;
    if (first == 0) kept_.clear();
    if (view.window == 0 && start < first + rows)
      kept_.push_back(scores.slice(2, start - first, rows, stride)
                          .slice(3, 0, view.causal ? T / 2 : scores.size(3))
                          .clone());
  }

  /// Participation ratio of the kept scores without their row means, [S, H]; NaN for samples that are not
  /// read.
  at::Tensor directions(const TileView& view, const at::Tensor& like) {
    at::Tensor out = at::full_like(like, kNone);
    if (kept_.empty()) return out;
    const at::Tensor kept = at::cat(kept_, 2);  // [S, H, rows, keys]
    kept_.clear();
    if (kept.size(2) < 2 || kept.size(3) < 2) return out;
    for (int64_t s = 0; s < out.size(0); ++s) {
      if (view.packing.samples[static_cast<size_t>(view.place.first_sample + s)] % kRankEvery != 0) continue;
      const at::Tensor c = kept[s] - kept[s].mean(-1, true),
                       gram = at::matmul(c, c.transpose(1, 2)).to(at::kDouble);
      out[s].copy_(gram.diagonal(0, 1, 2).sum(-1).square() /
                   gram.square().sum(at::IntArrayRef{1, 2}));  // 0 / 0: none
    }
    return out;
  }

  at::Tensor squares_, pairs_;
  std::vector<at::Tensor> kept_;  // rows of these samples so far
};

}  // namespace

extern const Lens lens_logits{
    .name = "logits",
    .summary = "How far the scores of a query's keys differ",
    .cost = "about 0.03 forward passes at T = 128",
    .sites = {{"attn.hook_attn_scores", SiteForm::tiles}},
    .metrics = {{.name = "logit_rms",
                 .formula =
                     "root mean square of the scores a query may see, without their mean over its keys",
                 .meaning = "in nats; 0: attention is uniform, whatever the tokens"},
                {.name = "logit_rank",
                 .formula = "(sum sigma^2)^2 / sum sigma^4 of those scores, of every fourth sample and 64 "
                            "queries; causal: of "
                            "the later half of the queries and the earlier half of the keys",
                 .meaning = "directions in which a head compares these tokens; 1: one feature decides",
                 .low = 1.0 - 1e-5}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Logits>(); }};

}  // namespace rankscope
