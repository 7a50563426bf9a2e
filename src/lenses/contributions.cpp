// How evenly the heads of a layer contribute to what it writes: the size of what each adds, beside that of
// all. Sant et al. (Multiformer, 2022) find that layers with even contributions translate better.
#include <ATen/ATen.h>

#include <cmath>

#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/support/some_tokens.h"

namespace rankscope {
namespace {

enum Contribution : int64_t { kHeadShare, kEvenness, kContributions };  // as they are declared below

constexpr int64_t kSomeTokens = 32;  // of a longer sample, all over it

// [S, n, ..] to [S, ..].
at::Tensor median_over_tokens(const at::Tensor& x) {
  const at::Tensor sorted = std::get<0>(x.sort(1));
  const int64_t n = x.size(1);
  return 0.5 * (sorted.select(1, (n - 1) / 2) + sorted.select(1, n / 2));
}

class Contributions : public Measurement {
  at::Tensor factored(const FactoredView& view) override {
    const int64_t samples = view.packing.count(), H = view.z.size(1), d_v = view.z.size(2),
                  d = view.W_O.size(0);
    const at::Tensor numbers =
        at::full({1, samples, H + 1, kContributions}, kNone, view.z.options().dtype(at::kDouble));
    const at::Tensor W = view.W_O.detach().to(view.z.scalar_type()).view({d, H, d_v}).permute({1, 2, 0});
    for (const SomeTokens& some :
         some_tokens(view.packing, Take::all, kSomeTokens, view.z, kSomeTokens * H * d)) {
      const at::Tensor z = some.of(view.z);  // [S, n, H, d_v]
      const int64_t n = z.size(1);
      const at::Tensor written = at::bmm(z.flatten(0, 1).transpose(0, 1), W);  // [H, S * n, d]
      const at::Tensor size = written.abs().sum(-1, false, at::kDouble).view({H, -1, n}).permute({1, 2, 0});
      // Where no head writes anything, 0 / 0: not defined.
      const at::Tensor share = median_over_tokens(size / size.sum(-1, true));  // [S, H]
      numbers[0].narrow(1, 0, H).select(2, kHeadShare).index_copy_(0, some.samples, share);
      if (H < 2) continue;
      const at::Tensor p = share / share.sum(-1, true);
      numbers[0]
          .select(1, H)
          .select(1, kEvenness)
          .index_copy_(0, some.samples,
                       (p * at::log(p.clamp_min(1e-300))).sum(-1) / -std::log(static_cast<double>(H)));
    }
    return numbers;
  }
};

}  // namespace

extern const Lens lens_contributions{
    .name = "contributions",
    .summary = "How evenly the heads of a layer contribute to what it writes",
    .cost = "about 0.1 forward passes at T = 128",
    .sites = {{"attn.hook_result", SiteForm::factored}},
    .metrics = {{.name = "head_share",
                 .formula = "median over tokens, special ones too (at most 32 of a sample), of "
                            "||z_h W_O,h^T||_1 over the sum of all heads'",
                 .meaning = "1 / H where all heads contribute alike; near 0: the head adds next to nothing",
                 .high = 1.0,
                 .version = 2},
                {.name = "head_evenness",
                 .formula = "-sum p log p / log H, p = head_share over its sum",
                 .meaning = "1: every head contributes as much; 0: one head writes all",
                 .high = 1.0,
                 .version = 2}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<Contributions>();
    },
    .on_request = true};

}  // namespace rankscope
