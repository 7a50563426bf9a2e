#include "pass/mean_output.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "model/embed_and_unembed.h"

namespace rankscope {
namespace {

constexpr int64_t kVocabularyTile = 4096;

/// The logits of every batch, a tile of the vocabulary at a time.
class Logits {
 public:
  Logits(const FinalState& full, const PassPlan& plan)
      : source_(*plan.sources.front()), head_(source_.load("unembed")) {
    for (const at::Tensor& x : *full.x) h_.push_back(before_vocabulary(x, source_.spec(), head_));
  }
  template <class See>  // see(of) for every tile, of(batch) being its logits [N, tile]
  void each(See see) {
    const int64_t V = source_.spec().output.vocabulary;
    for (int64_t first = 0; first < V; first += kVocabularyTile) {
      const int64_t count = std::min(kVocabularyTile, V - first);
      const at::Tensor W = source_.row_range("unembed.W_U", first, count), &b = head_.get_or_none("b_U");
      see([&](size_t batch) {
        return capped(at::linear(h_[batch], W, b.defined() ? b.narrow(0, first, count) : b),
                      source_.spec().output);
      });
    }
  }

 private:
  WeightSource& source_;
  const Weights head_;
  std::vector<at::Tensor> h_;
};

template <class Number>  // of rows [begin, begin + n) of a batch
std::map<int64_t, double> by_sample(const std::vector<Batch>& batches, Number number) {
  std::map<int64_t, double> out;
  for (size_t b = 0; b < batches.size(); ++b)
    for (int64_t s = 0; s < batches[b].count(); ++s)
      out[batches[b].samples[static_cast<size_t>(s)]] =
          number(b, batches[b].offsets[static_cast<size_t>(s)], batches[b].length(s));
  return out;
}

std::map<int64_t, double> of_distributions(const FinalState& full, const PassPlan& plan) {
  const std::vector<Batch>& batches = plan.inputs.front();
  Logits logits(full, plan);
  std::vector<at::Tensor> z(batches.size()),
      kl;  // log of the sum over words, and what was added up, [N] each
  double tokens = 0;
  logits.each([&](const auto& of) {
    for (size_t b = 0; b < batches.size(); ++b) {
      const at::Tensor here = of(b).to(at::kDouble).logsumexp(1);
      z[b] = z[b].defined() ? at::logaddexp(z[b], here) : here;
    }
  });
  for (const at::Tensor& t : z) kl.push_back(at::zeros_like(t)), tokens += static_cast<double>(t.size(0));
  logits.each([&](const auto& of) {
    at::Tensor mean;
    for (size_t b = 0; b < batches.size(); ++b) {
      const at::Tensor p = (of(b).to(at::kDouble) - z[b].unsqueeze(1)).exp_().sum(0) / tokens;
      mean = mean.defined() ? mean + p : p;
    }
    const at::Tensor log_mean = mean.clamp_min(1e-300).log();
    for (size_t b = 0; b < batches.size(); ++b) {
      const at::Tensor log_p = of(b).to(at::kDouble) - z[b].unsqueeze(1);
      kl[b] += (log_p.exp() * (log_p - log_mean)).sum(1);
    }
  });
  return by_sample(batches, [&](size_t b, int64_t begin, int64_t n) {
    return kl[b].narrow(0, begin, n).mean().clamp_min(0).item<double>();
  });
}

std::map<int64_t, double> of_hidden_states(const FinalState& full, const PassPlan& plan) {
  at::Tensor sum;
  double tokens = 0;
  for (const at::Tensor& x : *full.x) {
    const at::Tensor here = x.to(at::kDouble).sum(0);
    sum = sum.defined() ? sum + here : here;
    tokens += static_cast<double>(x.size(0));
  }
  return by_sample(plan.inputs.front(), [&](size_t b, int64_t begin, int64_t n) {
    const at::Tensor y = (*full.x)[b].narrow(0, begin, n).to(at::kDouble);
    return ((y - sum / tokens).square().sum() / y.square().sum().clamp_min(1e-300)).item<double>();
  });
}

}  // namespace

std::map<int64_t, double> divergence_from_mean(const FinalState& full, const PassPlan& plan) {
  const c10::NoGradGuard no_grad;
  return plan.sources.front()->spec().output.kind != HeadKind::none ? of_distributions(full, plan)
                                                                    : of_hidden_states(full, plan);
}

}  // namespace rankscope
