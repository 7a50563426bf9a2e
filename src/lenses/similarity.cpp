// Mean cosine over pairs of distinct tokens. With unit vectors u_i the sum over pairs is (||sum u||^2 - sum
// ||u||^2): O(T d) instead of O(T^2 d).
#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/rows.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"
#include "lenses/support/tokens.h"

namespace rankscope {
namespace {

constexpr size_t kSimilarityMetrics = 1;

void measure_similarity(const Tokens& t, double* out) {
  std::vector<double> sum(static_cast<size_t>(t.width), 0.0);
  double count = 0;
  for (int64_t i = 0; i < t.count; ++i) {
    const double norm = std::sqrt(kernels::sum_squares(t.x + i * t.width, t.width));
    if (norm == 0) continue;  // has no direction
    kernels::add_scaled(sum.data(), t.x + i * t.width, 1 / norm, t.width);
    ++count;
  }
  if (count < 2) return;
  out[0] = (kernels::sum_squares(sum.data(), t.width) - count) / (count * (count - 1));
}

// The same where the tensors are.
at::Tensor similarity_there(const PaddedTokens& t) {
  const at::Tensor norm = t.x.square().sum(2, true).sqrt(), none = at::full({}, kNone, norm.options());
  const at::Tensor unit = at::where(norm > 0, t.x / norm, at::zeros({}, norm.options()));
  const at::Tensor count = (norm > 0).sum({1, 2}).to(at::kDouble);
  const at::Tensor cosine = (unit.sum(1).square().sum(1) - count) / (count * (count - 1));
  return at::where(count >= 2, cosine, none).unsqueeze(1);
}

class Similarity : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    return stays_on_device(view.x) ? measure_padded(view, similarity_there)
                                   : measure_tokens(view, kSimilarityMetrics, measure_similarity);
  }
};

}  // namespace

extern const Lens lens_similarity{
    .name = "similarity",
    .summary = "How alike the tokens point",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = residual_sites(),
    .metrics = {{.name = "token_cosine",
                 .formula = "mean of x_i . x_j / (||x_i|| ||x_j||) over i != j",
                 .meaning =
                     "1: all tokens point the same way; about 0: unrelated. Tokens of norm 0 are left out",
                 .low = -1.0,
                 .high = 1.0}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<Similarity>();
    }};

}  // namespace rankscope
