// What each head writes apart from what it writes into every token alike, and whether the other heads of the
// layer write it too. With Z the heads' carried values of a sample, centred over its tokens, and M = W_O^T
// W_O, the inner product of what heads h and k write is the sum over their blocks of (Z^T Z) * M: no output
// is ever formed.
#include <ATen/ATen.h>

#include <cmath>

#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/support/on_device.h"
#include "lenses/support/some_tokens.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

enum HeadWritesMetric : int64_t { kVaried, kDuplicate, kHeadWritesMetrics };  // as they are declared below

constexpr int64_t kWriteGroups = 32;  // of samples, left out in turn for the error of the share predicted
constexpr double kFarToken = 20;
constexpr double kTokenRounding = 8;  // times epsilon: a few roundings of each number of the stream
constexpr double kRounding = 100;     // times what one sum is off: what lies below is not read
constexpr int64_t kMostWrites = 32;  // of a longer sample, all over it: ratios of sums over them need no more

double square(double x) { return x * x; }

/// 1 for tokens [S, n, d] whose squared distance from the mean is at most 20 times the median one, else 0: a
/// massive token would be most of what the stream varies, and every head small beside it. [S, n, 1]
at::Tensor near_the_rest(const at::Tensor& x) {
  const at::Tensor distance = (x - x.mean(1, true)).square().sum(2);
  return (distance <= kFarToken * std::get<0>(distance.median(1, true))).to(x.scalar_type()).unsqueeze(2);
}

/// By head: the share of its output that the best combination of the other heads' outputs gives. grams
/// [G, H, H]. Not defined for a head whose output varies by less than `least` [G, 1] (squared, of the
/// stream): that is rounding.
at::Tensor predicted(const at::Tensor& grams, const at::Tensor& least) {
  const at::Tensor size = grams.diagonal(0, 1, 2).clamp_min(1e-300).sqrt();  // [G, H]
  const at::Tensor cosines = grams / (size.unsqueeze(1) * size.unsqueeze(2));
  // A ridge of 1e-9 keeps heads that are exact copies of each other invertible; they read 1 - 2e-9.
  const at::Tensor ridge = 1e-9 * at::eye(grams.size(1), grams.options());
  // Without a check, which would wait for the device: the ridge leaves nothing singular.
  const at::Tensor inverse = std::get<0>(at::linalg_inv_ex(cosines + ridge));
  const at::Tensor share = (1 - inverse.diagonal(0, 1, 2).reciprocal()).clamp(0.0, 1.0);
  return at::where(grams.diagonal(0, 1, 2) > least, share, at::full_like(share, kNone));
}

class HeadWrites : public Measurement {
  at::Tensor factored(const FactoredView& view) override {
    const int64_t samples = view.packing.count(), heads = view.z.size(1), d_v = view.z.size(2);
    const auto wide = view.z.options().dtype(at::kDouble);
    if (!map_.defined()) {
      // In the values' own precision, as what they are multiplied by below: in double it cost as much again.
      const at::Tensor W = view.W_O.detach().to(view.z.scalar_type());
      map_ = W.t().matmul(W);
      grams_ = at::zeros({kWriteGroups, heads, heads}, wide);
      least_ = at::zeros({kWriteGroups, 1}, wide);
      own_ = map_.view({heads, d_v, heads, d_v}).diagonal(0, 0, 2).permute({2, 0, 1});
      filled_.assign(kWriteGroups, false);
    }
    epsilon_ = epsilon_of(view.z);
    const at::Tensor numbers = at::full({1, samples, heads + 1, kHeadWritesMetrics}, kNone, wide);
    const at::Tensor varied = numbers[0].narrow(1, 0, heads).select(2, kVaried);  // [samples, H]
    for (const SomeTokens& some : some_tokens(view.packing, Take::all, kMostWrites, view.z, map_.numel())) {
      const auto total = [](const at::Tensor& t) { return t.flatten(1).sum(1, true); };         // [S, 1]
      const at::Tensor stream = some.of(view.x).to(at::kDouble), kept = near_the_rest(stream);  // [S, n, 1]
      const at::Tensor x = stream * kept, count = kept.sum(1, true);
      const at::Tensor w = kept.to(view.z.scalar_type()), z = some.of(view.z).flatten(2) * w,
                       mean = z.sum(1, true) / w.sum(1, true), c = z - mean * w;  // [S, n, H d_v]
      const at::Tensor inner = at::bmm(c.transpose(1, 2), c).mul_(map_);
      const at::Tensor gram =
          inner.view({-1, heads, d_v, heads, d_v}).sum(at::IntArrayRef{2, 4}).to(at::kDouble);  // [S, H, H]
      const at::Tensor own = gram.diagonal(0, 1, 2),
                       beside = total((x - kept * (x.sum(1, true) / count)).square());
      // Tokens that differ by rounding alone are one token: nothing is large or small beside that.
      const at::Tensor differ = beside > square(kTokenRounding * epsilon_) * total(x.square());
      const at::Tensor share = at::where(differ, beside.reciprocal(), at::zeros_like(beside));
      varied.index_copy_(0, some.samples,
                         at::where(differ, (own.clamp_min(0) * share).sqrt(), at::full_like(own, kNone)));
      const at::Tensor groups = some.by_group(kWriteGroups);
      grams_ += groups.matmul((gram * share.unsqueeze(2)).flatten(1)).view_as(grams_);  // every sample alike
      // Rounding is that of what is summed: the tokens as they are, and what heads carry with all biases.
      const at::Tensor m = mean.view({-1, heads, d_v, 1});
      const at::Tensor common = total(m.mul(own_.matmul(m))).to(at::kDouble) * count.squeeze(2);
      least_ +=
          groups.matmul((total(x.square()) + total(own) + common) * share) * square(kRounding * epsilon_);
      for (const int64_t number : some.names) filled_[static_cast<size_t>(number % kWriteGroups)] = true;
      samples_ += some.count();
    }
    return numbers;
  }

  at::Tensor finish() override {
    if (samples_ == 0 || grams_.size(1) < 2) return {};
    const int64_t heads = grams_.size(1);
    const at::Tensor all = grams_.sum(0, true);
    at::Tensor out = at::full({heads + 1, kHeadWritesMetrics, 3}, kNone, grams_.options());
    const at::Tensor to = out.narrow(0, 0, heads).select(1, kDuplicate);  // [H, 3]
    to.select(1, 0).copy_(predicted(all, least_.sum(0, true))[0]);
    to.select(1, 2).fill_(static_cast<double>(samples_));
    std::vector<int64_t> kept;
    for (int64_t g = 0; g < kWriteGroups; ++g)
      if (filled_[static_cast<size_t>(g)]) kept.push_back(g);
    if (kept.size() > 1) {
      const at::Tensor which = sent(at::tensor(kept, at::kLong), grams_.device());
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
              "||C z_h W_O,h^T||_F / ||C x||_F, C centres over tokens, special ones too (at most 32 of a "
              "sample, without those whose squared distance from the mean is over 20 times the median one), "
              "x the stream before the block; none where its tokens differ by rounding alone",
          .meaning = "near 0: the head writes one vector into every token, or nothing",
          .version = 3},
         {.name = "head_predicted",
          .formula =
              "R^2 of C z_h W_O,h^T from the other heads' of the layer, one coefficient a head for all "
              "samples together, each sample over its ||C x||_F^2",
          .meaning = "1: the other heads write it, too",
          .high = 1.0,
          .version = 3}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<HeadWrites>();
    }};

}  // namespace rankscope
