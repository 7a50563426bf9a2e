// Rank of what each expert of a mixture writes. In the rows of this lens the column `head` counts experts.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "lenses/lens.h"
#include "lenses/support/numbers.h"
#include "spectral/on_device.h"

namespace rankscope {
namespace {

enum ExpertWritesMetric : size_t {
  kExpertRank,
  kExpertRankRel,
  kExpertWritesMetrics
};  // as they are declared below

constexpr int64_t kMostOfAnExpert = 64;  // of each expert: what a layer of many experts can keep

class ExpertWrites : public Measurement {
  void expert(const ExpertView& view) override {
    at::Tensor& kept = kept_[view.expert];
    const int64_t have = kept.defined() ? kept.size(0) : 0,
                  more = std::min(kMostOfAnExpert - have, view.written.size(0));
    if (more <= 0) return;
    const at::Tensor rows = view.written.detach().narrow(0, 0, more).clone();
    kept = have > 0 ? at::cat({kept, rows}) : rows;
  }

  at::Tensor finish() override {
    if (kept_.empty()) return {};
    Totals totals(kept_.rbegin()->first + 1, kExpertWritesMetrics);
    for (const auto& [expert, written] : kept_) {
      const int64_t tokens = written.size(0);
      if (tokens < 2) continue;  // one token has rank one, whatever the expert
      const at::Tensor x = written.to(at::kDouble);
      const at::Tensor sigma = at::linalg_svdvals(x.cpu());
      const double rank = effective_rank_of(sigma.unsqueeze(0))[0].item<double>();
      totals.set(expert, kExpertRank, rank, kNone, tokens);
      totals.set(expert, kExpertRankRel, rank / static_cast<double>(std::min(tokens, x.size(1))), kNone,
                 tokens);
    }
    return totals.tensor();
  }

  std::map<int64_t, at::Tensor> kept_;  // by expert, [n, d]
};

}  // namespace

extern const Lens lens_expert_writes{
    .name = "expert_writes",
    .summary = "Rank of what each expert writes",
    .cost = "about 0.01 forward passes at T = 128",
    .sites = {{"mlp.hook_expert_out", SiteForm::experts}},
    .metrics =
        {{.name = "expert_rank",
          .formula =
              "effective rank of what the expert writes into the first 64 tokens that take it, shorter "
              "samples first, before their shares (column head: which expert; n: tokens)",
          .meaning = "1: it writes one direction, whatever the token",
          .low = 1.0 - 1e-9},
         {.name = "expert_rank_rel",
          .formula = "expert_rank / min(tokens, width)",
          .meaning = "share of the rank there could be",
          .high = 1.0 + 1e-9}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
      return std::make_unique<ExpertWrites>();
    }};

}  // namespace rankscope
