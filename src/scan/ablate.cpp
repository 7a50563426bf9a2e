#include "scan/ablate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/stats.h"
#include "importance/stand_ins.h"
#include "model/head_means.h"
#include "pass/output.h"
#include "pass/pass.h"

namespace rankscope {
namespace {

constexpr size_t kAtOnce = 16;  // variants: each holds its own activations
constexpr size_t kMostCandidates = 64;
constexpr size_t kMostPaired = 8;  // heads that are tried in pairs: the dearest of those that can go

struct Head {
  double varied;
  int64_t layer, head;
  std::string label() const { return fmt::format("L{}H{}", layer, head); }
  auto operator<=>(const Head&) const = default;
};

class Heads {
 public:
  Heads(const Ablation& a, ResultTable& table, std::vector<std::string>& notes,
        std::vector<std::string>& names)
      : a_(a), table_(table), notes_(notes), names_(names) {}

  void run() {
    std::vector<Head> heads = candidates();
    if (heads.empty()) return;
    means_ = head_means(a_.source, a_.batches);
    std::erase_if(heads, [&](const Head& h) { return means_[static_cast<size_t>(h.layer)].mean.empty(); });
    for (const Head& h : heads) file_able(h);
    std::vector<Variant> alone;
    for (const Head& h : heads) {
      alone.push_back({"-head-mean:" + h.label(), fixed(spec(), h, true), 0, 0});
      alone.push_back({"-head-bare:" + h.label(), fixed(spec(), h, false), 0, 0});
    }
    for (size_t first = 0; first < alone.size(); first += kAtOnce)
      measure({alone.begin() + static_cast<std::ptrdiff_t>(first),
               alone.begin() + static_cast<std::ptrdiff_t>(std::min(alone.size(), first + kAtOnce))});
    together(heads);
  }

 private:
  const ModelSpec& spec() const { return a_.source.spec(); }

  std::vector<Head> candidates() {
    const double dead = a_.thresholds["dead"];
    std::vector<Head> out;
    for (const Row& r : table_.rows)
      if (r.variant == "full" && r.metric == "head_varied_rel" && r.head >= 0 && r.value < dead)
        out.push_back({r.value, r.layer, r.head});
    std::sort(out.begin(), out.end());
    if (out.size() > kMostCandidates) {
      notes_.push_back(
          fmt::format("{} heads vary by less than {} of the stream; the {} weakest were taken out",
                      out.size(), dead, kMostCandidates));
      out.resize(kMostCandidates);
    }
    return out;
  }

  void file_able(const Head& h) {
    const HeadMeans& of = means_[static_cast<size_t>(h.layer)];
    if (of.able.empty()) return;
    const std::vector<double>& samples = of.able[static_cast<size_t>(h.head)];
    const Estimate e = arithmetic_mean(samples);
    table_.rows.push_back({"full", fmt::format("blocks.{}.attn.hook_v", h.layer),
                           static_cast<int32_t>(h.layer), static_cast<int32_t>(h.head), "head_able_rel",
                           e.value, e.stderr_, static_cast<int64_t>(samples.size()),
                           static_cast<int32_t>(h.layer), "all"});
  }

  ModelSpec fixed(ModelSpec spec, const Head& h, bool mean) const {
    const HeadMeans& of = means_[static_cast<size_t>(h.layer)];
    return with_fixed_head(std::move(spec), h.layer, h.head,
                           (mean ? of.mean : of.bare)[static_cast<size_t>(h.head)]);
  }

  void together(const std::vector<Head>& heads) {
    const std::string metric = output_metric(spec());
    const double epsilon = a_.thresholds[metric == "output_kl" ? "epsilon" : "epsilon_error"];
    std::vector<std::pair<double, FixedHead>> free;  // by what each costs alone
    std::vector<std::string> labels;
    ModelSpec all = spec();
    for (const Head& h : heads) {
      const Row* cost = table_.find("-head-mean:" + h.label(), metric, -1);
      if (cost == nullptr || cost->value >= epsilon) continue;
      labels.push_back(h.label());
      free.push_back(
          {cost->value,
           {h.layer, h.head, means_[static_cast<size_t>(h.layer)].mean[static_cast<size_t>(h.head)]}});
      all = fixed(std::move(all), h, true);
    }
    if (labels.size() < 2) return;
    const std::string name = fmt::format("-heads-mean:{}", fmt::join(labels, "+"));
    measure({{name, std::move(all), 0, 0}});
    if (const Row* cost = table_.find(name, metric, -1); cost == nullptr || cost->value < epsilon) return;
    std::stable_sort(free.begin(), free.end(),
                     [](const auto& x, const auto& y) { return x.first > y.first; });
    if (free.size() > kMostPaired) {
      notes_.push_back(
          fmt::format("of the {} heads that can go alone, the {} dearest were taken out in pairs",
                      free.size(), kMostPaired));
      free.resize(kMostPaired);
    }
    std::vector<FixedHead> paired;
    for (auto& [cost, h] : free) paired.push_back(std::move(h));
    std::sort(paired.begin(), paired.end(), [](const FixedHead& x, const FixedHead& y) {
      return std::pair(x.layer, x.head) < std::pair(y.layer, y.head);
    });
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t i = 0; i < paired.size(); ++i)
      for (size_t j = i + 1; j < paired.size(); ++j) pairs.emplace_back(i, j);
    const Questions every_token{LossKind::none, a_.samples, {}};
    Evaluator evaluator({.source = a_.source,
                         .questions = every_token,
                         .device = a_.device,
                         .parts = false,
                         .progress = a_.progress});
    measure_stand_ins(evaluator, paired, pairs, "-heads-mean:", table_);
  }

  void measure(std::vector<Variant> variants) {
    PassPlan plan;
    plan.variants = {{"full", spec(), 0, 0}};
    for (Variant& v : variants) {
      names_.push_back(v.name);
      plan.variants.push_back(std::move(v));
    }
    plan.sources = {&a_.source};
    plan.inputs = {a_.batches};
    plan.layers = a_.layers;
    plan.device = a_.device;
    const std::vector<FinalState> states = run_pass(plan, table_, notes_, a_.progress);
    std::vector<const FinalState*> others;
    for (size_t i = 1; i < states.size(); ++i) others.push_back(&states[i]);
    compare_outputs(states.front(), plan, others, plan, table_, notes_);
    int64_t samples = 0;
    for (const Batch& b : a_.batches) samples += b.count();
    for (const size_t v : states.front().variants)  // nothing changed: the head carried just that
      if (v != 0)
        table_.rows.push_back({plan.variants[v].name, output_site(spec()), -1, -1, output_metric(spec()), 0.0,
                               0.0, samples, static_cast<int32_t>(spec().depth()), "all"});
  }

  const Ablation& a_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  std::vector<std::string>& names_;
  std::vector<HeadMeans> means_;
};

}  // namespace

void ablate_heads(const Ablation& ablation, ResultTable& table, std::vector<std::string>& notes,
                  std::vector<std::string>& names) {
  Heads(ablation, table, notes, names).run();
}

}  // namespace rankscope
