// A lens at a site: it is shown the site's views, and what it returns is filed there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/array.h"
#include "lenses/lens.h"
#include "pass/pass.h"
#include "pass/recorder.h"

namespace rankscope {

Packing packing_of(const Batch& batch);

/// One lens at one site.
class SiteLens {
 public:
  SiteLens(const Lens& lens, const LensContext& context, const Site& site, std::vector<Name> variants)
      : lens_(lens),
        name_(site.name),
        measurement_(lens.start(context)),
        recorder_(lens, site, std::move(variants)) {}

  void whole(const WholeView& view);
  void tile(const TileView& view);
  void factored(const FactoredView& view);
  void weights(const WeightsView& view);

  /// After the last batch; `arrays`, where given, takes what the lens keeps beside its numbers.
  void finish(ResultTable& table, std::vector<NamedArray>* arrays = nullptr);

 private:
  const Lens& lens_;
  std::string name_;
  std::unique_ptr<Measurement> measurement_;
  SiteRecorder recorder_;
};

/// Every lens of the plan that reads one site.
class SiteLenses {
 public:
  SiteLenses(const PassPlan& plan, const Site& site, const ModelSpec& spec,
             const std::vector<Name>& variants);

  bool empty() const { return lenses_.empty(); }
  void whole(const WholeView& view);
  void tile(const TileView& view);
  void factored(const FactoredView& view);
  void weights(const WeightsView& view);
  void finish(ResultTable& table, ReportSample* shown = nullptr);

 private:
  std::vector<SiteLens> lenses_;
};

}  // namespace rankscope
