// How far the scores of a query's keys differ, in nats. What is common to all keys of a query, as a bias of
// the keys is, softmax does not see: it is taken off first.
#include <ATen/ATen.h>

#include <limits>

#include "base/table.h"
#include "lenses/lens.h"

namespace rankscope {
namespace {

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
    const at::Tensor choice = (count > 1).to(at::kDouble);
    const at::Tensor squares = (centred.square_().sum(-1).to(at::kDouble) * choice).sum(-1),
                     pairs = (count * choice).sum(-1);  // [S, H]
    if (view.place.first_row == 0)
      squares_ = squares, pairs_ = pairs;
    else
      squares_ = squares_ + squares, pairs_ = pairs_ + pairs;
    if (!view.last()) return {};
    const at::Tensor rms = (squares_ / pairs_).sqrt();  // 0 / 0 where no query has a choice: not defined
    const at::Tensor none = at::full({rms.size(0), 1}, kNone, rms.options());
    return at::cat({rms, none}, 1).unsqueeze(0).unsqueeze(-1);
  }

  at::Tensor squares_, pairs_;
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
                 .meaning = "in nats; 0: attention is uniform, whatever the tokens"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Logits>(); }};

}  // namespace rankscope
