// What each head writes into the residual stream, beside what is there. ||z W_O^T||_F^2 = tr(z M z^T) with
// M = W_O^T W_O [d_v, d_v], so a head's output [N, d] is never formed.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "lenses/lens.h"

namespace rankscope {
namespace {

/// Squared length of every row, in double, on the host.
std::vector<double> row_energies(const at::Tensor& squares) {
  const at::Tensor sums = squares.sum(-1).to(at::kCPU).contiguous();
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

std::vector<double> by_sample(const std::vector<double>& rows, const Packing& packing) {
  std::vector<double> sums(static_cast<size_t>(packing.count()), 0.0);
  for (size_t s = 0; s < sums.size(); ++s)
    for (int64_t i = packing.offsets[s]; i < packing.offsets[s + 1]; ++i)
      sums[s] += rows[static_cast<size_t>(i)];
  return sums;
}

class Heads : public Measurement {
  void heads(const HeadsView& view, Recorder& recorder) override {
    const int64_t count = view.z.size(1), d_v = view.z.size(2);
    const bool first = grams_.empty();
    if (first) grams_.resize(static_cast<size_t>(count));
    const std::vector<double> stream =
        by_sample(row_energies(view.x.detach().to(at::kDouble).square()), view.packing);
    std::vector<std::vector<double>> written(static_cast<size_t>(count));
    const auto measure = [&](int64_t h) {
      at::Tensor& gram = grams_[static_cast<size_t>(h)];
      if (first) {
        const at::Tensor w = view.W_O.detach().narrow(1, h * d_v, d_v).to(at::kDouble);
        gram = at::mm(w.t(), w);
      }
      const at::Tensor z = view.z.detach().select(1, h).to(at::kDouble);
      written[static_cast<size_t>(h)] = by_sample(row_energies(at::mm(z, gram) * z), view.packing);
    };
    if (view.z.is_cpu())
      parallel_over(count, measure);
    else
      for (int64_t h = 0; h < count; ++h) measure(h);
    for (size_t h = 0; h < written.size(); ++h)
      for (size_t s = 0; s < stream.size(); ++s) {
        const double ratio = std::sqrt(std::max(0.0, written[h][s]) / stream[s]);
        if (stream[s] > 0 && std::isfinite(ratio))
          recorder.sample("head_output_rel", view.packing.samples[s], ratio, static_cast<int>(h));
      }
  }

  std::vector<at::Tensor> grams_;  // of W_O by head: the same for every batch
};

}  // namespace

extern const Lens lens_heads{
    .name = "heads",
    .summary = "How much each head writes into the residual stream",
    .cost = "about 0.03 forward passes at T = 128",
    .reads = static_cast<unsigned>(Reads::heads),
    .metrics = {{.name = "head_output_rel",
                 .formula = "||z_h W_O,h^T||_F / ||x||_F, x the residual stream before the block",
                 .meaning = "near 0: a head that does nothing here"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Heads>(); }};

}  // namespace rankscope
