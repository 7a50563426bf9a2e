// What each head writes apart from what it writes into every token alike, and whether the other heads of the
// layer write it too. With Z the heads' carried values of a sample, centred over its tokens, and M = W_O^T
// W_O, the inner product of what heads h and k write is the sum over their blocks of (Z^T Z) * M: no output
// is ever formed.
#include <ATen/ATen.h>

#include <cmath>

#include "base/table.h"
#include "lenses/lens.h"

namespace rankscope {
namespace {

enum Metric : int64_t { kVaried, kDuplicate, kMetrics };  // as they are declared below

constexpr int64_t kGroups = 32;    // of samples, left out in turn for the error of the share predicted
constexpr double kRounding = 100;  // times what one sum is off: what lies below is not read
constexpr int64_t kMostTokens =
    32;  // evenly spaced ones of a longer sample: ratios of sums over them need no more

double square(double x) { return x * x; }

/// By head: the share of its output that the best combination of the other heads' outputs gives. grams
/// [G, H, H]. Not defined for a head whose output varies by less than `least` [G, 1] (squared, of the
/// stream): that is rounding.
at::Tensor predicted(const at::Tensor& grams, const at::Tensor& least) {
  const at::Tensor size = grams.diagonal(0, 1, 2).clamp_min(1e-300).sqrt();  // [G, H]
  const at::Tensor cosines = grams / (size.unsqueeze(1) * size.unsqueeze(2));
  // A ridge of 1e-9 keeps heads that are exact copies of each other invertible; they read 1 - 2e-9.
  const at::Tensor ridge = 1e-9 * at::eye(grams.size(1), grams.options());
  const at::Tensor inverse = at::linalg_inv(cosines + ridge);
  const at::Tensor share = (1 - inverse.diagonal(0, 1, 2).reciprocal()).clamp(0.0, 1.0);
  return at::where(size.square() > least, share, at::full_like(share, kNone));
}

class HeadWrites : public Measurement {
  at::Tensor factored(const FactoredView& view) override {
    const int64_t samples = view.packing.count(), heads = view.z.size(1), d_v = view.z.size(2);
    const auto wide = view.z.options().dtype(at::kDouble);
    if (!map_.defined()) {
      const at::Tensor W = view.W_O.detach().to(at::kDouble);
      map_ = W.t().matmul(W).to(view.z.scalar_type());
      grams_ = at::zeros({kGroups, heads, heads}, wide);
      least_ = at::zeros({kGroups, 1}, wide);
      own_ = map_.view({heads, d_v, heads, d_v}).diagonal(0, 0, 2).permute({2, 0, 1});
      filled_.assign(kGroups, false);
    }
    epsilon_ = view.z.scalar_type() == at::kDouble ? std::ldexp(1.0, -52) : std::ldexp(1.0, -23);
    at::Tensor numbers = at::full({1, samples, heads + 1, kMetrics}, kNone, wide);
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t first = view.packing.offsets[static_cast<size_t>(s)], length = view.packing.length(s);
      if (length < 2) continue;
      const auto some = [&](const at::Tensor& t) {
        return t.narrow(0, first, length).slice(0, 0, length, (length + kMostTokens - 1) / kMostTokens);
      };
      const at::Tensor z = some(view.z).flatten(1);
      const at::Tensor c = z - z.mean(0), inner = c.t().matmul(c).mul_(map_);
      const at::Tensor gram =
          inner.view({heads, d_v, heads, d_v}).sum(at::IntArrayRef{1, 3}).to(at::kDouble);  // [H, H]
      const at::Tensor x = some(view.x).to(at::kDouble);
      const at::Tensor beside = (x - x.mean(0)).square().sum();
      const at::Tensor share = at::where(beside > 0, beside.reciprocal(), at::zeros_like(beside));
      numbers[0][s]
          .narrow(0, 0, heads)
          .select(1, kVaried)
          .copy_(at::where(beside > 0, (gram.diagonal().clamp_min(0) * share).sqrt(),
                           at::full_like(gram.diagonal(), kNone)));
      const int64_t group = view.packing.samples[static_cast<size_t>(s)] % kGroups;
      grams_[group] += gram * share;  // every sample counts alike
      // Rounding is that of what is summed: the tokens as they are, and what heads carry with all biases.
      const at::Tensor m = z.mean(0).view({heads, d_v, 1});
      const at::Tensor common = m.mul(own_.matmul(m)).sum().to(at::kDouble) * z.size(0);
      least_[group] +=
          (x.square().sum() + gram.diagonal().sum() + common) * share * square(kRounding * epsilon_);
      filled_[static_cast<size_t>(group)] = true;
      ++samples_;
    }
    return numbers;
  }

  at::Tensor finish() override {
    if (samples_ == 0 || grams_.size(1) < 2) return {};
    const int64_t heads = grams_.size(1);
    const at::Tensor all = grams_.sum(0, true);
    at::Tensor out = at::full({heads + 1, kMetrics, 3}, kNone, grams_.options());
    const at::Tensor to = out.narrow(0, 0, heads).select(1, kDuplicate);  // [H, 3]
    to.select(1, 0).copy_(predicted(all, least_.sum(0, true))[0]);
    to.select(1, 2).fill_(static_cast<double>(samples_));
    std::vector<int64_t> kept;
    for (int64_t g = 0; g < kGroups; ++g)
      if (filled_[static_cast<size_t>(g)]) kept.push_back(g);
    if (kept.size() > 1) {
      const at::Tensor which = at::tensor(kept, at::kLong).to(grams_.device());
      const at::Tensor without =
          predicted(all - grams_.index_select(0, which), least_.sum(0, true) - least_.index_select(0, which));
      const double m = static_cast<double>(kept.size());
      to.select(1, 1).copy_(((without - without.mean(0)).square().sum(0) * ((m - 1) / m)).sqrt());
    }
    return out;
  }

  at::Tensor map_, own_;      // [H d_v, H d_v], and its blocks [H, d_v, d_v]
  at::Tensor grams_, least_;  // [groups, H, H], [groups, 1]
  std::vector<bool> filled_;
  int64_t samples_ = 0;
  double epsilon_ = 0;  // of the dtype the values came in
};

}  // namespace

extern const Lens lens_head_writes{
    .name = "head_writes",
    .summary = "What each head writes that differs between tokens, and whether others write it too",
    .cost = "about 0.08 forward passes at T = 128",
    .sites = {{"attn.hook_result", SiteForm::factored}},
    .metrics =
        {{.name = "head_varied_rel",
          .formula =
              "||C z_h W_O,h^T||_F / ||C x||_F, C centres over tokens (at most 32 evenly spaced ones), x "
              "the stream before the block",
          .meaning = "near 0: the head writes one vector into every token, or nothing"},
         {.name = "head_predicted",
          .formula = "R^2 of C z_h W_O,h^T from the other heads' of the layer, one coefficient a head",
          .meaning = "1: the other heads write it, too",
          .high = 1.0}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<HeadWrites>();
    }};

}  // namespace rankscope
