// What multiplies the heads of a gated delta rule behind their norm (parts/gated_delta_attention.cpp): SiLU
// of a map of the token. It is no share: it may be below zero and has no upper end, so it has sizes instead
// of the bins of lenses/gates.cpp.
#include <ATen/ATen.h>

#include "lenses/lens.h"

namespace rankscope {
namespace {

class OutputGates : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    constexpr double kShut = 0.1;
    const bool by_head = view.x.dim() == 3;
    const at::Tensor x = by_head ? view.x.detach() : view.x.detach().unsqueeze(1);  // [N, H, d_v]
    const at::Tensor all =
        at::stack({x.mean(-1, false, at::kDouble), x.abs().lt(kShut).to(at::kDouble).mean(-1),
                   x.square().mean(-1, false, at::kDouble)},
                  -1);  // [N, H, metrics], squares for the last
    std::vector<at::Tensor> samples;
    for (int64_t s = 0; s < view.packing.count(); ++s) {
      const at::Tensor heads =
          all.narrow(0, view.packing.offsets[static_cast<size_t>(s)], view.packing.length(s)).mean(0);
      const at::Tensor together = heads.mean(0, true);
      at::Tensor both = by_head ? at::cat({heads, together}) : together;
      both.select(1, 2).sqrt_();
      samples.push_back(both);
    }
    return at::stack(samples).unsqueeze(0);
  }
};

}  // namespace

extern const Lens lens_output_gates{
    .name = "output_gates",
    .summary = "How far the output gates of gated delta rules are open, by head",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"attn.hook_output_gate", SiteForm::whole}},
    .metrics = {{.name = "output_gate_mean",
                 .formula = "mean over tokens and the head's channels of SiLU(W_Z x)",
                 .meaning = "what multiplies a normed head; SiLU is never below -0.28",
                 .low = -1e300},
                {.name = "output_gate_shut",
                 .formula = "share of the gate's values between -0.1 and 0.1",
                 .meaning = "how sparse the gate is: 1 is shut",
                 .high = 1.0},
                {.name = "output_gate_size",
                 .formula = "square root of the mean square of the gate's values",
                 .meaning = "how much of a normed head gets through, 1 being all of it; may be more"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<OutputGates>();
    }};

}  // namespace rankscope
