// A lens at a site: it is shown the site's views, and what it returns is filed there.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/array.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "pass/pass.h"
#include "pass/recorder.h"

namespace rankscope {

Packing packing_of(const Batch& batch);

/// One lens at one site. Its numbers arrive by the crossing, so it must outlive what that has not read.
class SiteLens {
 public:
  SiteLens(const Lens& lens, const LensContext& context, const Site& site, std::vector<Name> variants,
           Crossing& crossing)
      : lens_(lens),
        name_(site.name),
        measurement_(lens.start(context)),
        crossing_(crossing),
        variants_(variants),
        recorder_(lens, site, std::move(variants)) {}

  void whole(const WholeView& view);
  void tile(const TileView& view);
  void long_pattern(const LongView& view);
  bool reads_long() const;  // it needs no tiles of long texts
  void factored(const FactoredView& view);
  void expert(const ExpertView& view);
  void weights(const WeightsView& view);

  /// What the lens leaves for the next block; after `finish`.
  void leave(LensMemory& memory);
  /// After the last batch; `arrays`, where given, takes what the lens keeps beside its numbers.
  void finish(std::vector<NamedArray>* arrays = nullptr);
  /// Appends the rows, after everything has arrived.
  void flush(ResultTable& table) { recorder_.flush(table); }

 private:
  const Lens& lens_;
  std::string name_;
  std::unique_ptr<Measurement> measurement_;
  Crossing& crossing_;
  std::vector<Name> variants_;
  SiteRecorder recorder_;
};

/// Every lens of the plan that reads one site.
class SiteLenses {
 public:
  SiteLenses(const PassPlan& plan, const Site& site, const ModelSpec& spec, const std::vector<Name>& variants,
             Crossing& crossing);

  bool empty() const { return lenses_.empty(); }
  void whole(const WholeView& view);
  void tile(const TileView& view);
  void long_pattern(const LongView& view);
  bool reads_long() const;  // nobody needs tiles of long texts
  void factored(const FactoredView& view);
  void expert(const ExpertView& view);
  void weights(const WeightsView& view);
  void finish(ReportSample* report_sample = nullptr);
  void flush(ResultTable& table);

 private:
  std::deque<SiteLens> lenses_;  // which stay where they are
  std::shared_ptr<LensMemory> memory_;
};

}  // namespace rankscope
