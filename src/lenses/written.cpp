// Whether attention writes something else into every token.
#include <ATen/ATen.h>

#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"

namespace rankscope {
namespace {

// A few tokens at a time are widened, however long the text.
at::Tensor spread_of(const at::Tensor& y) {
  constexpr int64_t kTokens = 512;
  at::Tensor sum, squares, rest;
  const auto add = [](at::Tensor& to, const at::Tensor& part) { to = to.defined() ? to + part : part; };
  for (const at::Tensor& some : y.split(kTokens)) {
    const at::Tensor wide = some.to(at::kDouble);
    add(sum, wide.sum(0));
    add(squares, wide.square().sum());
  }
  const at::Tensor mean = sum / static_cast<double>(y.size(0));
  for (const at::Tensor& some : y.split(kTokens)) add(rest, (some.to(at::kDouble) - mean).square().sum());
  return (rest / squares).sqrt();
}

class Written : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    if (const at::Tensor fused = fused_residuals(view); fused.defined())
      return fused.narrow(0, 0, 1).narrow(3, 4, 1);  // of all tokens: |R|_F / |X|_F
    const int64_t samples = view.packing.count();
    at::Tensor numbers = at::full({1, samples, 1, 1}, kNone, view.x.options().dtype(at::kDouble));
    for (int64_t s = 0; s < samples; ++s) {
      if (view.packing.length(s) < 2) continue;
      const at::Tensor y =
          view.x.narrow(0, view.packing.offsets[static_cast<size_t>(s)], view.packing.length(s));
      numbers[0][s][0][0] = spread_of(y);
    }
    return numbers;
  }
};

}  // namespace

extern const Lens lens_written{
    .name = "written",
    .summary = "Whether attention writes something else into every token",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"hook_attn_out", SiteForm::whole}},
    .metrics = {{.name = "attn_out_sd_rel",
                 .formula =
                     "||C Y||_F / ||Y||_F, Y what attention writes with its biases, C centres over tokens",
                 .meaning = "0: it adds one vector to every token of a sample, as uniform attention does",
                 .high = 1.0 + 1e-9}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Written>(); }};

}  // namespace rankscope
