// Where a router sends the tokens of a mixture of experts. In the rows of this lens the column `head` counts
// experts.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"

namespace rankscope {
namespace {

enum RoutingMetric : size_t {  // as they are declared below
  kLoad,
  kBalance,
  kSpread,
  kDead,
  kAgreement,
  kAgreementNull,
  kRoutingMetrics
};

/// exp(entropy) of the weights above zero: how many of them there are, counted by weight.
double effective_count(const double* weights, int64_t n) {
  double total = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) total += std::max(weights[i], 0.0);
  if (!(total > 0)) return kNone;
  for (int64_t i = 0; i < n; ++i)
    if (weights[i] > 0) sum -= weights[i] / total * std::log(weights[i] / total);
  return std::exp(sum);
}

/// The shares of every token, batch by batch, for the next layer that has experts.
struct Shares {
  std::vector<at::Tensor> batches;  // [N, E], on the host
};

/// How much the experts a token takes at one layer tell about those it takes at another: their mutual
/// information over the smaller of their entropies, from `joint` [E', E], sums over tokens of the product of
/// shares.
double agreement(const at::Tensor& joint) {
  const at::Tensor p = joint / joint.sum();
  const auto entropy = [](const at::Tensor& q) { return -at::xlogy(q, q).sum().item<double>(); };
  const double rows = entropy(p.sum(1)), columns = entropy(p.sum(0)), least = std::min(rows, columns);
  if (!(least > 1e-12)) return kNone;  // one expert takes all: there is nothing to tell
  return std::clamp((rows + columns - entropy(p)) / least, 0.0, 1.0);
}

class Routing : public Measurement {
 public:
  explicit Routing(std::shared_ptr<const void> before)
      : before_(std::static_pointer_cast<const Shares>(std::move(before))) {}

 private:
  at::Tensor whole(const WholeView& view) override {
    const at::Tensor shares = host(view.x.to(at::kDouble));  // [N, E]
    const int64_t experts = shares.size(1), samples = view.packing.count();
    const double* all = shares.data_ptr<double>();
    taken_.resize(static_cast<size_t>(experts), 0);
    compare(shares, view.packing);
    samples_ += samples;
    Numbers numbers(samples, experts, kRoutingMetrics);
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t first = view.packing.offsets[static_cast<size_t>(s)], tokens = view.packing.length(s);
      std::vector<double> load(static_cast<size_t>(experts), 0.0);
      double spread = 0;
      for (int64_t t = first; t < first + tokens; ++t) {
        const double* row = all + t * experts;
        for (int64_t e = 0; e < experts; ++e) load[static_cast<size_t>(e)] += row[e] != 0;
        spread += effective_count(row, experts);
      }
      for (int64_t e = 0; e < experts; ++e) {
        taken_[static_cast<size_t>(e)] += static_cast<int64_t>(load[static_cast<size_t>(e)]);
        numbers.of(s, e)[kLoad] = load[static_cast<size_t>(e)] / static_cast<double>(tokens);
      }
      numbers.of(s)[kBalance] = effective_count(load.data(), experts);
      numbers.of(s)[kSpread] = spread / static_cast<double>(tokens);
    }
    return numbers.tensor();
  }

  at::Tensor finish() override {
    if (taken_.empty()) return {};
    Totals totals(static_cast<int64_t>(taken_.size()), kRoutingMetrics);
    int64_t dead = 0;
    for (const int64_t tokens : taken_) dead += tokens == 0;
    totals.set(kDead, static_cast<double>(dead), kNone, samples_);
    if (joint_.defined()) {
      totals.set(kAgreement, agreement(joint_), kNone, samples_);
      totals.set(kAgreementNull, agreement(apart_), kNone, samples_);
    }
    return totals.tensor();
  }

  std::shared_ptr<const void> left() override { return own_; }

  /// Adds the batch to the joint shares with the layer before. The null lays each token beside the one half a
  /// sample away.
  void compare(const at::Tensor& shares, const Packing& packing) {
    const size_t batch = own_->batches.size();
    const at::Tensor here = shares / shares.sum(1, true).clamp_min(1e-300);
    own_->batches.push_back(here);
    if (before_ == nullptr || batch >= before_->batches.size()) return;
    const at::Tensor& there = before_->batches[batch];
    if (there.size(0) != here.size(0)) return;
    if (!joint_.defined()) {
      joint_ = at::zeros({there.size(1), here.size(1)}, here.options());
      apart_ = at::zeros_like(joint_);
    }
    joint_ += there.t().matmul(here);
    for (int64_t s = 0; s < packing.count(); ++s) {
      const int64_t first = packing.offsets[static_cast<size_t>(s)], length = packing.length(s);
      apart_ += there.narrow(0, first, length).t().matmul(here.narrow(0, first, length).roll(length / 2, 0));
    }
  }

  std::shared_ptr<const Shares> before_;  // of the last layer with experts, if there was one
  std::shared_ptr<Shares> own_ = std::make_shared<Shares>();
  at::Tensor joint_, apart_;    // [E', E]
  std::vector<int64_t> taken_;  // tokens that took each expert
  int64_t samples_ = 0;
};

}  // namespace

extern const Lens lens_routing{
    .name = "routing",
    .summary = "Which experts the tokens take",
    .cost = "less than 0.01 forward passes at T = 128",
    .sites = {{"mlp.hook_shares", SiteForm::whole}},
    .metrics = {{.name = "expert_load",
                 .formula = "share of the sample's tokens that take the expert (column head: which expert)",
                 .meaning = "active / experts for all: the load is even; 0: nobody takes it",
                 .high = 1.0},
                {.name = "experts_used",
                 .formula = "exp(entropy of load / sum load) of a sample",
                 .meaning = "experts in use, counted by load; all of them: the load is even",
                 .low = 1.0},
                {.name = "experts_per_token",
                 .formula = "mean over tokens of exp(entropy of shares / sum shares)",
                 .meaning = "experts a token uses, counted by share; at most as many as it takes",
                 .low = 1.0},
                {.name = "experts_dead",
                 .formula = "experts that no token of the scan takes",
                 .meaning = "read it beside the number of tokens: few tokens leave experts out by chance"},
                {.name = "expert_agreement",
                 .formula = "I(e'; e) / min(H(e'), H(e)), e' and e the experts of a token at the last layer "
                            "with experts before and at this one, weighed by its shares; all tokens",
                 .meaning = "1: the one tells the other; read it beside expert_agreement_null",
                 .high = 1.0},
                {.name = "expert_agreement_null",
                 .formula =
                     "the same with e' of the token half a sample (rounded down) further on, round its end",
                 .meaning = "what few tokens, many experts and uneven loads give by chance",
                 .high = 1.0}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Routing>(context.before);
    }};

}  // namespace rankscope
