// How much of the latent of keys and values a text uses: the latent is all that a cache keeps, so what it
// does not use could be narrower.
#include <ATen/ATen.h>

#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"
#include "spectral/batch.h"
#include "spectral/rows.h"

namespace rankscope {
namespace {

class Latent : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    const at::Tensor x = host(view.x.to(at::kDouble));
    const double epsilon = epsilon_of(view.x);
    const int64_t width = x.size(1), samples = view.packing.count();
    Numbers numbers(samples, 0, 3);
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t first = view.packing.offsets[static_cast<size_t>(s)], tokens = view.packing.length(s);
      const Spectrum spectrum = spectrum_of(x.data_ptr<double>() + first * width, tokens, width, epsilon);
      double* out = numbers.of(s);
      out[0] = effective_rank(spectrum);
      out[1] = out[0] / static_cast<double>(width);
      out[2] = stable_rank(spectrum);
    }
    return numbers.tensor();
  }
};

}  // namespace

extern const Lens lens_latent{
    .name = "latent",
    .summary = "Rank of the latent that keys and values come from",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"attn.hook_kv_latent", SiteForm::whole}},
    .metrics = {{.name = "kv_latent_effective_rank",
                 .formula =
                     "exp(-sum p log p), p = sigma / sum sigma, of the latent [tokens, kv_rank] before "
                     "its norm",
                 .meaning = "directions of the latent that the text uses, counted by weight"},
                {.name = "kv_latent_effective_rank_rel",
                 .formula = "kv_latent_effective_rank / kv_rank",
                 .meaning =
                     "share of what a cache keeps; bounded by tokens / kv_rank where the text is short",
                 .high = 1.0},
                {.name = "kv_latent_stable_rank",
                 .formula = "sum sigma^2 / sigma_1^2 of the same matrix",
                 .meaning = "its energy in units of its strongest direction"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Latent>(); }};

}  // namespace rankscope
