// Where a router sends the tokens of a mixture of experts. In the rows of this lens the column `head` counts
// experts.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lenses/lens.h"
#include "lenses/support/host.h"
#include "lenses/support/numbers.h"

namespace rankscope {
namespace {

enum Metric : size_t { kLoad, kBalance, kSpread, kDead, kMetrics };  // as they are declared below

/// exp(entropy) of the weights above zero: how many of them there are, counted by weight.
double effective_count(const double* weights, int64_t n) {
  double total = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) total += std::max(weights[i], 0.0);
  if (!(total > 0)) return kNone;
  for (int64_t i = 0; i < n; ++i)
    if (weights[i] > 0) sum -= weights[i] / total * std::log(weights[i] / total);
  return std::exp(sum);
}

class Routing : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    const at::Tensor shares = host(view.x.to(at::kDouble));  // [N, E]
    const int64_t experts = shares.size(1), samples = view.packing.count();
    const double* all = shares.data_ptr<double>();
    taken_.resize(static_cast<size_t>(experts), 0);
    samples_ += samples;
    Numbers numbers(samples, experts, kMetrics);
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
    Totals totals(static_cast<int64_t>(taken_.size()), kMetrics);
    int64_t dead = 0;
    for (const int64_t tokens : taken_) dead += tokens == 0;
    totals.set(kDead, static_cast<double>(dead), kNone, samples_);
    return totals.tensor();
  }

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
                 .meaning = "read it beside the number of tokens: few tokens leave experts out by chance"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Routing>(); }};

}  // namespace rankscope
