// What tells tokens apart behind the norm that reads them next, whatever the gain and the bias of that norm:
// those can be written into the matrices behind it. Channels that dwarf the others are found before the norm
// and taken off behind it, and the norm's statistics stay those of the real tokens: a LayerNorm spreads a
// massive channel over all others, where nobody would find it. Where the norm stands behind the block instead
// (post-norm), what it was given follows from what it gave, up to each token's mean and size.
#include <ATen/ATen.h>

#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"
#include "lenses/support/some_tokens.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

enum NormedMetric : int64_t {
  kNormedResidual,
  kNormedChannels,
  kLeftOut,
  kNormedMetrics
};  // as they are declared below

constexpr double kSmall = 1e-15;     // squares of larger numbers are numbers in float32, too
constexpr int64_t kMostNormed = 32;  // of a longer sample, all over it: no number here needs more

/// 1 for what is not massive, of squares [S, m].
at::Tensor ordinary(const at::Tensor& squares) { return 1 - above_median_of(squares.sqrt()); }

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
    return behind_.kind == NormKind::layer ? n - std::get<0>(n.median(-1, true)) : n;
  }

  at::Tensor whole(const WholeView& view) override {
    const int64_t samples = view.packing.count(), d = view.x.size(1);
    const at::Tensor numbers =
        at::full({2, samples, 1, kNormedMetrics}, kNone, view.x.options().dtype(at::kDouble));
    const at::Tensor content = numbers[1].select(1, 0);  // [samples, metrics]
    for (const SomeTokens& some :
         some_tokens(view.packing, Take::content, kMostNormed, view.x, kMostNormed * view.x.size(1))) {
      const at::Tensor x = some.of(view.x), before = behind_.acts() ? given(x) : x;  // [S, n, d]
      const at::Tensor sizes = x.square().sum(2);                                    // [S, n]
      const at::Tensor w = ordinary(sizes).unsqueeze(2), count = w.sum(at::IntArrayRef{1, 2}, true);
      const at::Tensor channels = at::bmm(w.transpose(1, 2), before.square()).squeeze(1);  // [S, d]
      const at::Tensor kept = ordinary(channels).unsqueeze(1);                             // [S, 1, d]
      at::Tensor y = x * kept;
      if (norm_.kind == NormKind::layer) y = (y - y.mean(2, true)) * kept;
      if (behind_.acts() && behind_.kind == NormKind::layer) y = without_share(x, before, kept);
      const at::Tensor scale = norm_.there() ? norm_scale(x, norm_) * w : w;
      // What tells these tokens apart, as a share of their size. Where nothing is left they are all alike.
      const auto residual = [&](const at::Tensor& t) {
        const auto square = [](const at::Tensor& v) {
          return v.square().sum(at::IntArrayRef{1, 2}, false, at::kDouble);
        };
        // Tokens so small that their squares are zero are scaled: they are not zero themselves.
        const at::Tensor largest = t.abs().amax(at::IntArrayRef{1, 2}, true),
                         u = t / largest.masked_fill((largest > kSmall).logical_or(largest == 0), 1);
        const at::Tensor size = square(u), ratio = (square(u - w * (u.sum(1, true) / count)) / size).sqrt();
        return at::where(size == 0, at::zeros_like(ratio), ratio);
      };
      content.select(1, kNormedResidual).index_copy_(0, some.samples, residual(y * scale));
      content.select(1, kLeftOut).index_copy_(0, some.samples, residual(x * (1 - kept) * scale));
      content.select(1, kNormedChannels)
          .index_copy_(0, some.samples,
                       static_cast<double>(d) - kept.sum(at::IntArrayRef{1, 2}, false, at::kDouble));
    }
    return numbers;
  }

  /// Tokens behind a LayerNorm without what the channels that are left out put into the others through the
  /// token's mean: the others have the mean zero again that they had among themselves.
  at::Tensor without_share(const at::Tensor& x, const at::Tensor& before, const at::Tensor& kept) const {
    const at::Tensor share = at::bmm(before, kept.transpose(1, 2)) / kept.sum(2, true),
                     all = before.mean(2, true);
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
          .formula = "||R||_F / ||X||_F over content tokens (at most 32 of a sample) as the norm that "
                     "reads them next makes them, without its gain and bias (as they are where none does); "
                     "channels above 20 median channels before "
                     "that norm, or before the one behind the block, are taken off behind it",
          .meaning = "share of the tokens' size that tells them apart: near 0 is collapse",
          .mean = Mean::geometric,
          .high = 1.0 + 1e-5,
          .version = 6},
         {.name = "normed_channels",
          .formula =
              "channels whose rms over content tokens (at most 32 of a sample) exceeds 20 times the median "
              "of those that are not zero, before the norm; what a norm behind the block was given is had "
              "from "
              "what it gave without gain and bias, so but for each token's mean and size: the median channel "
              "is taken for the mean, and channels of gain zero for zero",
          .meaning = "how many channels the residual leaves out",
          .version = 5},
         {.name = "normed_left_out",
          .formula = "||R||_F / ||X||_F of the channels that residual_fro_rel_normed leaves out, alone, each "
                     "token over the norm's own size, its mean not taken off; 0 where there are none; "
                     "arithmetic mean over samples",
          .meaning = "whether the channels that are left out tell tokens apart themselves",
          .high = 1.0 + 1e-5,
          .version = 2}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Normed>(context);
    }};

}  // namespace rankscope
