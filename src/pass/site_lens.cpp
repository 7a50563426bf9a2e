#include "pass/site_lens.h"

#include <algorithm>

namespace rankscope {

Packing packing_of(const Batch& batch) { return {batch.offsets, batch.samples, batch.content, batch.ids}; }

void SiteLens::whole(const WholeView& view) {
  at::Tensor numbers;
  const auto measure = [&] { numbers = measurement_->whole(view); };
  DeviceEvent made;
  if (lens_.beside)
    made = beside(view.x, measure);
  else
    measure();
  recorder_.add(numbers, view.packing.samples, crossing_, std::move(made));
}

void SiteLens::tile(const TileView& view) {
  recorder_.add(measurement_->tile(view),
                view.packing.samples.subspan(static_cast<size_t>(view.place.first_sample),
                                             static_cast<size_t>(view.tile.size(0))),
                crossing_);
}

void SiteLens::long_pattern(const LongView& view) {
  auto* reader = dynamic_cast<LongMeasurement*>(measurement_.get());
  recorder_.add(reader->long_pattern(view),
                view.packing.samples.subspan(static_cast<size_t>(view.place.first_sample),
                                             static_cast<size_t>(view.pattern.samples())),
                crossing_);
}

bool SiteLens::reads_long() const {
  return dynamic_cast<const LongMeasurement*>(measurement_.get()) != nullptr;
}

void SiteLens::factored(const FactoredView& view) {
  recorder_.add(measurement_->factored(view), view.packing.samples, crossing_);
}

void SiteLens::expert(const ExpertView& view) { measurement_->expert(view); }

void SiteLens::leave(LensMemory& memory) {
  if (const std::shared_ptr<const void> left = measurement_->left())
    for (const Name& variant : variants_) memory[{std::string(lens_.name), variant.str()}] = left;
}

void SiteLens::weights(const WeightsView& view) { measurement_->weights(view); }

void SiteLens::finish(std::vector<NamedArray>* arrays) {
  recorder_.add_totals(measurement_->finish(), crossing_);
  if (arrays == nullptr) return;
  for (const std::string_view name : lens_.arrays) {
    const at::Tensor array = measurement_->array(name);
    if (!array.defined()) continue;
    crossing_.add(array, [arrays, full = fmt::format("{}.{}", name_, name), shape = array.sizes().vec(),
                          count = array.numel()](const double* values) {
      arrays->push_back({full, shape, {values, values + count}});
    });
  }
}

SiteLenses::SiteLenses(const PassPlan& plan, const Site& site, const ModelSpec& spec,
                       const std::vector<Name>& variants, Crossing& crossing)
    : memory_(plan.left) {
  if (site.layer >= 0 && !plan.layers[static_cast<size_t>(site.layer)]) return;
  int64_t samples = 0;
  for (const Batch& b : plan.inputs.front()) samples += b.count();
  for (const Lens* lens : plan.lenses)
    if (reads(*lens, site.like.empty() ? site.name : site.like)) {
      const auto before =
          memory_->find({std::string(lens->name), variants.empty() ? "" : variants.front().str()});
      lenses_.emplace_back(*lens,
                           LensContext{spec, site.layer, plan.seed, samples, plan.sink,
                                       before == memory_->end() ? nullptr : before->second, site.name},
                           site, variants, crossing);
    }
}

void SiteLenses::whole(const WholeView& view) {
  for (SiteLens& lens : lenses_) lens.whole(view);
}

void SiteLenses::tile(const TileView& view) {
  for (SiteLens& lens : lenses_) lens.tile(view);
}

void SiteLenses::long_pattern(const LongView& view) {
  for (SiteLens& lens : lenses_) lens.long_pattern(view);
}

bool SiteLenses::reads_long() const {
  return std::all_of(lenses_.begin(), lenses_.end(), [](const SiteLens& l) { return l.reads_long(); });
}

void SiteLenses::factored(const FactoredView& view) {
  for (SiteLens& lens : lenses_) lens.factored(view);
}

void SiteLenses::expert(const ExpertView& view) {
  for (SiteLens& lens : lenses_) lens.expert(view);
}

void SiteLenses::weights(const WeightsView& view) {
  for (SiteLens& lens : lenses_) lens.weights(view);
}

void SiteLenses::finish(ReportSample* report_sample) {
  for (SiteLens& lens : lenses_) {
    lens.finish(report_sample != nullptr ? &report_sample->arrays() : nullptr);
    lens.leave(*memory_);
  }
}

void SiteLenses::flush(ResultTable& table) {
  for (SiteLens& lens : lenses_) lens.flush(table);
}

}  // namespace rankscope
