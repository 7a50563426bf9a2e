// How open the gates of attention are, by head: what multiplies queries, keys, values or what heads carry
// (parts/gated_attention.cpp), or how much a token writes into a state (delta rule).
#include <ATen/ATen.h>

#include "attention/variant.h"
#include "base/table.h"
#include "lenses/lens.h"

namespace rankscope {
namespace {

constexpr int64_t kGateBins = 10;

// Gates of a delta rule are how much a key writes and, where the state forgets, how much is kept, head by
// head. 0: they are other gates.
int64_t heads_of_delta(const LensContext& context) {
  if (context.layer < 0 || context.layer >= context.spec.depth()) return 0;
  const BranchSpec* b = context.spec.blocks[static_cast<size_t>(context.layer)].attention_branch();
  return b != nullptr && attention_variant(b->attention()->variant).name == "delta" ? b->attention()->kv_heads
                                                                                    : 0;
}

class Gates : public Measurement {
 public:
  explicit Gates(int64_t delta_heads) : delta_heads_(delta_heads) {}

 private:
  at::Tensor whole(const WholeView& view) override {
    at::Tensor x = view.x.detach(), kept;
    const bool by_head = delta_heads_ > 0 || x.dim() == 3;
    if (delta_heads_ > 0 && x.dim() == 2) x = x.reshape({x.size(0), delta_heads_, -1});
    if (!by_head) x = x.unsqueeze(1);
    if (delta_heads_ > 0 && x.size(2) > 1) kept = x.select(2, 1).to(at::kDouble);
    if (delta_heads_ > 0) x = x.narrow(2, 0, 1);

    std::vector<at::Tensor> metrics{
        x.mean(-1, false, at::kDouble)};  // [N, H] each, as they are declared below
    const auto width = static_cast<double>(x.size(2));
    at::Tensor before = at::zeros_like(metrics.front());  // how many values lie below the bin
    for (int64_t bin = 1; bin <= kGateBins; ++bin) {
      const at::Tensor below = bin == kGateBins
                                   ? at::full_like(before, width)
                                   : x.lt(static_cast<double>(bin) / kGateBins).sum(-1).to(at::kDouble);
      metrics.push_back((below - before) / width);
      before = below;
    }
    metrics.push_back(kept.defined() ? kept : at::full_like(metrics.front(), kNone));
    const at::Tensor all = at::stack(metrics, -1);  // [N, H, metrics]

    std::vector<at::Tensor> samples;
    for (int64_t s = 0; s < view.packing.count(); ++s) {
      const int64_t first = view.packing.offsets[static_cast<size_t>(s)];
      const at::Tensor heads = all.narrow(0, first, view.packing.length(s)).mean(0),
                       together = heads.mean(0, true);
      samples.push_back(by_head ? at::cat({heads, together}) : together);
    }
    return at::stack(samples).unsqueeze(0);
  }

  int64_t delta_heads_;
};

constexpr std::string_view kGateBinMeaning = "one of ten bins of a histogram: those of a head sum to one";

}  // namespace

extern const Lens lens_gates{
    .name = "gates",
    .summary = "How open the gates of attention are, as a histogram by head",
    .cost = "about 0.02 forward passes at T = 128",
    .sites = {{"attn.hook_gate", SiteForm::whole}},
    .metrics = {{.name = "gate_mean",
                 .formula =
                     "mean over tokens and the head's channels of the gate (of a delta rule: of how much "
                     "a token writes)",
                 .meaning =
                     "1: everything passes; 0: nothing does (column head: of keys and values the KV head)",
                 .low = -0.3},  // of SiLU
                {.name = "gate_share_00",
                 .formula = "share of the gate's values below 0.1",
                 .meaning = "how sparse the gate is: 1 is shut",
                 .high = 1.0},
                {.name = "gate_share_10",
                 .formula = "share of the gate's values from 0.1 to below 0.2",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_20",
                 .formula = "share of the gate's values from 0.2 to below 0.3",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_30",
                 .formula = "share of the gate's values from 0.3 to below 0.4",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_40",
                 .formula = "share of the gate's values from 0.4 to below 0.5",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_50",
                 .formula = "share of the gate's values from 0.5 to below 0.6",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_60",
                 .formula = "share of the gate's values from 0.6 to below 0.7",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_70",
                 .formula = "share of the gate's values from 0.7 to below 0.8",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_80",
                 .formula = "share of the gate's values from 0.8 to below 0.9",
                 .meaning = kGateBinMeaning,
                 .high = 1.0},
                {.name = "gate_share_90",
                 .formula = "share of the gate's values of 0.9 and above",
                 .meaning = "1 is open",
                 .high = 1.0},
                {.name = "state_kept",
                 .formula = "mean over tokens of how much of its state a delta rule keeps",
                 .meaning = "1: it forgets nothing; 0: it starts anew with every token",
                 .high = 1.0}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<Gates>(heads_of_delta(context));
    }};

}  // namespace rankscope
