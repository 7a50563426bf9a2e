#include "pass/site_lens.h"

namespace rankscope {

Packing packing_of(const Batch& batch) { return {batch.offsets, batch.samples, batch.content}; }

void SiteLens::whole(const WholeView& view) {
  recorder_.add(measurement_->whole(view), view.packing.samples);
}

void SiteLens::tile(const TileView& view) {
  recorder_.add(measurement_->tile(view),
                view.packing.samples.subspan(static_cast<size_t>(view.place.first_sample),
                                             static_cast<size_t>(view.tile.size(0))));
}

void SiteLens::factored(const FactoredView& view) {
  recorder_.add(measurement_->factored(view), view.packing.samples);
}

void SiteLens::weights(const WeightsView& view) { measurement_->weights(view); }

void SiteLens::finish(ResultTable& table, std::vector<NamedArray>* arrays) {
  recorder_.add_totals(measurement_->finish());
  recorder_.flush(table);
  if (arrays == nullptr) return;
  for (const std::string_view name : lens_.arrays) {
    const at::Tensor array = measurement_->array(name);
    if (!array.defined()) continue;
    const at::Tensor here = array.to(at::kCPU, at::kFloat).contiguous();
    arrays->push_back({fmt::format("{}.{}", name_, name),
                       here.sizes().vec(),
                       {here.data_ptr<float>(), here.data_ptr<float>() + here.numel()}});
  }
}

SiteLenses::SiteLenses(const PassPlan& plan, const Site& site, const ModelSpec& spec,
                       const std::vector<Name>& variants) {
  if (site.layer >= 0 && !plan.layers[static_cast<size_t>(site.layer)]) return;
  int64_t samples = 0;
  for (const Batch& b : plan.inputs.front()) samples += b.count();
  for (const Lens* lens : plan.lenses)
    if (reads(*lens, site.name))
      lenses_.emplace_back(*lens, LensContext{spec, site.layer, plan.seed, samples, plan.sink}, site,
                           variants);
}

void SiteLenses::whole(const WholeView& view) {
  for (SiteLens& lens : lenses_) lens.whole(view);
}

void SiteLenses::tile(const TileView& view) {
  for (SiteLens& lens : lenses_) lens.tile(view);
}

void SiteLenses::factored(const FactoredView& view) {
  for (SiteLens& lens : lenses_) lens.factored(view);
}

void SiteLenses::weights(const WeightsView& view) {
  for (SiteLens& lens : lenses_) lens.weights(view);
}

void SiteLenses::finish(ResultTable& table, ReportSample* shown) {
  for (SiteLens& lens : lenses_) lens.finish(table, shown != nullptr ? &shown->arrays() : nullptr);
}

}  // namespace rankscope
