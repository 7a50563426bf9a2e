// What tells tokens apart behind the norm that reads them next, whatever the gain and the bias of that norm:
// those can be written into the matrices behind it. Channels that dwarf the others are found before the norm
// and taken off behind it, and the norm's statistics stay those of the real tokens: a LayerNorm spreads a
// massive channel over all others, where nobody would find it. Where the norm stands behind the block instead
// (post-norm), what it was given follows from what it gave, up to each token's mean and size.
#include <ATen/ATen.h>

#include <algorithm>

#include "base/table.h"
#include "lenses/lens.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

enum Metric : int64_t { kResidual, kChannels, kMetrics };  // as they are declared below

constexpr int64_t kMostTokens = 32;  // evenly spaced ones of a longer sample: no number here needs more
constexpr double kMassive = 20;      // medians, of a channel's or a token's size

/// Content tokens of a sample, [n, d].
at::Tensor content_rows(const WholeView& view, int64_t s) {
  std::vector<int64_t> rows;
  for (int64_t i = view.packing.offsets[static_cast<size_t>(s)];
       i < view.packing.offsets[static_cast<size_t>(s) + 1]; ++i)
    if (view.packing.content[static_cast<size_t>(i)]) rows.push_back(i);
  const auto n = static_cast<int64_t>(rows.size()),
             step = std::max<int64_t>(1, (n + kMostTokens - 1) / kMostTokens);
  std::vector<int64_t> some;
  for (int64_t i = 0; i < n; i += step) some.push_back(rows[static_cast<size_t>(i)]);
  return view.x.index_select(0, at::tensor(some, at::kLong).to(view.x.device()));
}

class Normed : public Measurement {
 public:
  explicit Normed(const LensContext& c) {
    const auto next = static_cast<size_t>(c.layer + 1);
    const auto& blocks = c.spec.blocks;
    // Of a variant without norms, too: it is held against the network that has them.
    norm_ = next < blocks.size() ? blocks[next].branches.front().before : c.spec.final_norm;
    if (norm_.there() || next > blocks.size() || blocks[next - 1].branches.empty()) return;
    const BranchSpec& last = blocks[next - 1].branches.back();
    behind_ = last.behind, behind_name_ = last.norm_name;
  }

 private:
  void weights(const WeightsView& view) override {
    if (!behind_.acts()) return;
    gain_ = gain_of_norm(behind_, view.weights, behind_name_ + ".");
    bias_ = bias_of_norm(behind_, view.weights, behind_name_ + ".");
  }

  /// What a norm behind the block was given, but for each token's mean and size: its gain and bias undone.
  /// The mean is put where half of the channels lie on either side, as no channel alone moves it there. A
  /// channel whose gain is zero tells nothing.
  at::Tensor given(const at::Tensor& x) const {
    at::Tensor n = bias_.defined() ? x - bias_.to(x.scalar_type()) : x;
    if (gain_.defined()) {
      const at::Tensor g = gain_.to(x.scalar_type());
      n = at::where(g != 0, n / g, at::zeros_like(n));
    }
    return behind_.kind == NormKind::layer ? n - std::get<0>(n.median(1, true)) : n;
  }

  at::Tensor whole(const WholeView& view) override {
    const int64_t samples = view.packing.count(), d = view.x.size(1);
    at::Tensor numbers = at::full({2, samples, 1, kMetrics}, kNone, view.x.options().dtype(at::kDouble));
    for (int64_t s = 0; s < samples; ++s) {
      const at::Tensor x = content_rows(view, s);
      if (x.size(0) < 2) continue;
      const at::Tensor before = behind_.acts() ? given(x) : x;
      const at::Tensor squares = before.square(), sizes = x.square().sum(1);  // [n, d], [n]
      const at::Tensor w = (sizes <= kMassive * kMassive * sizes.median()).to(x.scalar_type()).unsqueeze(1),
                       count = w.sum();
      const at::Tensor channels = at::mv(squares.t(), w.squeeze(1));  // [d]
      const at::Tensor kept = (channels <= kMassive * kMassive * channels.median()).to(x.scalar_type());
      at::Tensor y = x * kept;
      if (norm_.kind == NormKind::layer) y = (y - y.mean(1, true)) * kept;
      if (behind_.acts() && behind_.kind == NormKind::layer) y = without_share(x, before, kept);
      y = y * (norm_.there() ? norm_scale(x, norm_) * w : w);
      const at::Tensor rest = y - w * (y.sum(0, true) / count), all = y.square().sum(at::kDouble);
      at::Tensor out = numbers[1][s][0];
      out[kResidual] =
          (rest.square().sum(at::kDouble) / all).sqrt();  // 0 / 0 where nothing is left: not defined
      out[kChannels] = static_cast<double>(d) - kept.sum(at::kDouble);
    }
    return numbers;
  }

  /// Tokens behind a LayerNorm without what the channels that are left out put into the others through the
  /// token's mean: the others have the mean zero again that they had among themselves.
  at::Tensor without_share(const at::Tensor& x, const at::Tensor& before, const at::Tensor& kept) const {
    const at::Tensor share = at::mv(before, kept).unsqueeze(1) / kept.sum(), all = before.mean(1, true);
    const at::Tensor moved = share - all;  // zero where nothing is left out
    return (x - (gain_.defined() ? moved * gain_.to(x.scalar_type()) : moved)) * kept;
  }

  NormSpec norm_, behind_;
  std::string behind_name_;
  at::Tensor gain_, bias_;  // of the norm behind
};

}  // namespace

extern const Lens lens_normed{
    .name = "normed",
    .summary =
        "What tells tokens apart behind the next norm, without its gain and bias: what the verdict on parts "
        "reads",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"hook_resid_post", SiteForm::whole}},
    .metrics =
        {{.name = "residual_fro_rel_normed",
          .formula = "||R||_F / ||X||_F over content tokens as the norm that reads them next makes them, "
                     "without its "
                     "gain and bias (as they are where none does); channels above 20 median channels before "
                     "that norm, or before the one behind the block, are taken off behind it",
          .meaning = "share of the tokens' size that tells them apart: near 0 is collapse",
          .mean = Mean::geometric,
          .high = 1.0 + 1e-5,
          .version = 2},
         {.name = "normed_channels",
          .formula =
              "channels whose rms over content tokens exceeds 20 times the median channel's before the norm",
          .meaning = "how many channels the residual leaves out",
          .version = 2}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Normed>(context);
    }};

}  // namespace rankscope
