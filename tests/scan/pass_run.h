// A small network through the observed pass, with what it reports.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/random_source.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "pass/variants.h"
#include "support/tiny.h"

namespace rankscope {

struct PassOutcome {
  ResultTable table;
  std::vector<std::string> notes;
  std::vector<FinalState> states;
  std::map<std::string, std::string, std::less<>> not_finite;
};

inline PassPlan plan_of(const ModelSpec& spec, WeightSource& source, const std::vector<std::string>& off,
                        int64_t batch_size = 8) {
  ScanRequest request;
  request.off = off;
  PassPlan plan;
  plan.variants = make_variants(request, spec);
  plan.sources = {&source};
  plan.inputs.push_back(make_batches(test::random_samples({9, 5, 9, 12, 5}, 50), spec, batch_size));
  plan.lenses = lenses();
  plan.layers = parse_layers("", spec.depth());
  return plan;
}

inline PassOutcome run(PassPlan plan) {
  PassOutcome r;
  r.states = run_pass(plan, r.table, r.notes, {});
  r.not_finite = plan.not_finite;
  std::vector<const FinalState*> others;
  for (size_t i = 1; i < r.states.size(); ++i) others.push_back(&r.states[i]);
  compare_outputs(r.states.front(), plan, others, plan, r.table, r.notes);
  return r;
}

// Reports the mean of what it is shown, and how many tensors that were.
class MeanOf : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    ++seen_;
    at::Tensor out = at::full({1, view.packing.count(), 1, 2}, kNone, at::kDouble);
    for (int64_t s = 0; s < view.packing.count(); ++s)
      out[0][s][0][0] =
          view.x.narrow(0, view.packing.offsets[static_cast<size_t>(s)], view.packing.length(s)).mean();
    return out;
  }
  at::Tensor finish() override {
    at::Tensor out = at::full({1, 2, 3}, kNone, at::kDouble);
    out[0][1] = at::tensor({static_cast<double>(seen_), kNone, 5.0}, at::kDouble);
    return out;
  }
  int64_t seen_ = 0;
};

inline Lens lens_reading(std::vector<SiteUse> sites) {
  return {
      .name = "mean",
      .summary = {},
      .cost = {},
      .sites = std::move(sites),
      .metrics = {{.name = "mean", .formula = {}, .meaning = {}},
                  {.name = "batches", .formula = {}, .meaning = {}}},
      .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<MeanOf>(); }};
}

}  // namespace rankscope
