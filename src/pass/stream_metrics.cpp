#include "pass/stream_metrics.h"

#include <cmath>

#include "pass/metrics.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "pass/variants.h"

namespace rankscope {
namespace {

// Of the metrics that a reading has beside the lenses' one has a mean of its own.
const Lens& own_metrics() {
  static const Lens lens{.name = "readings",
                         .summary = {},
                         .cost = {},
                         .sites = {},
                         .metrics = {*metric_info("path_norm")},
                         .start = nullptr};
  return lens;
}

}  // namespace

StreamMetrics::StreamMetrics(std::string variant, const Site& site, const ModelSpec& spec)
    : variant_(std::move(variant)), own_(own_metrics(), site, {Name(variant_)}) {
  for (const Lens* lens : choose_lenses({"residual", "spectra"}))
    lenses_.emplace_back(*lens, LensContext{spec, site.layer, 0, 0, Thresholds()["sink"]}, site,
                         std::vector<Name>{Name(variant_)}, crossing_);
}

void StreamMetrics::see(const at::Tensor& x, const Batch& batch) {
  const Packing packing = packing_of(batch);
  for (SiteLens& lens : lenses_) lens.whole({x, packing});
}

void StreamMetrics::sample(std::string_view metric, int64_t sample, double value) {
  own_.sample(metric, sample, value);
}

void StreamMetrics::value(std::string_view metric, double value, double stderr_, int64_t n) {
  own_.value(metric, value, stderr_, n);
}

void StreamMetrics::finish(ResultTable& table) {
  for (SiteLens& lens : lenses_) lens.finish();
  crossing_.finish();
  for (SiteLens& lens : lenses_) lens.flush(table);
  own_.flush(table);
}

Mean mean_of(const std::string& metric) {
  for (const Lens* lens : choose_lenses({"residual", "spectra"}))
    for (const MetricInfo& m : lens->metrics)
      if (m.name == metric) return m.mean;
  return Mean::arithmetic;
}

std::vector<double> rms_by_sample(const at::Tensor& x, const Batch& batch) {
  std::vector<at::Tensor> squares;
  for (int64_t s = 0; s < batch.count(); ++s) {
    const at::Tensor part = x.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s));
    squares.push_back(part.to(at::kDouble).square().mean());
  }
  const at::Tensor here = at::stack(squares).cpu();
  std::vector<double> out;
  for (int64_t s = 0; s < batch.count(); ++s) out.push_back(std::sqrt(here.data_ptr<double>()[s]));
  return out;
}

std::vector<std::vector<double>> output_kl(const at::Tensor& full, const std::vector<at::Tensor>& states,
                                           const ModelSpec& spec, WeightSource& source, const Batch& batch) {
  PassPlan plan;
  plan.sources = {&source};
  plan.inputs = {{batch}};
  plan.variants.push_back({"full", spec, 0, 0});
  FinalState first;
  first.variants = {0};
  first.x->push_back(full);
  std::vector<FinalState> others(states.size());
  std::vector<const FinalState*> pointers;
  for (size_t i = 0; i < states.size(); ++i) {
    plan.variants.push_back({std::to_string(i), spec, 0, 0});
    others[i].variants = {i + 1};
    others[i].x->push_back(states[i]);
    pointers.push_back(&others[i]);
  }
  ResultTable table;
  std::vector<std::string> notes;
  compare_outputs(first, plan, pointers, plan, table, notes);
  // Rows come state by state, the samples of each in the batch's order.
  std::vector<std::vector<double>> out(states.size());
  for (size_t i = 0; i < table.samples.size(); ++i)
    out[i / static_cast<size_t>(batch.count())].push_back(table.samples[i].value);
  return out;
}

}  // namespace rankscope
