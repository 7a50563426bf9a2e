// Learned sinks (gpt-oss): every head scores a key that has no value. What a query gives to it is missing
// from its row of the pattern, and reaches no token.
#include <ATen/ATen.h>

#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"

namespace rankscope {
namespace {

class LearnedSinks : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    const at::Tensor given = host(view.x.to(at::kDouble));  // [N, H]
    const int64_t samples = view.packing.count(), heads = given.size(1);
    Numbers numbers(samples, heads, 1);
    for (int64_t s = 0; s < samples; ++s) {
      const at::Tensor mean =
          given.narrow(0, view.packing.offsets[static_cast<size_t>(s)], view.packing.length(s)).mean(0);
      for (int64_t h = 0; h < heads; ++h) *numbers.of(s, h) = mean[h].item<double>();
      *numbers.of(s) = mean.mean().item<double>();
    }
    return numbers.tensor();
  }
};

}  // namespace

extern const Lens lens_learned_sinks{
    .name = "learned_sinks",
    .summary = "What queries give to a learned key without a value",
    .cost = "less than 0.01 forward passes at T = 128",
    .sites = {{"attn.hook_sink", SiteForm::whole}},
    .metrics = {{.name = "learned_sink_mass",
                 .formula = "mean over queries of 1 - the sum of their row of the pattern",
                 .meaning = "1: the head reads nothing; 0: its learned sink takes no part",
                 .high = 1.0}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<LearnedSinks>();
    }};

}  // namespace rankscope
