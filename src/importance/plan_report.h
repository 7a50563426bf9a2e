// A plan as results: a table, sentences and a manifest, for the terminal, the report and the files.
#pragma once

#include "checkpoint/checkpoint.h"
#include "importance/plan.h"
#include "pass/input.h"

namespace rankscope {

/// The plan as one JSON object, which is also manifest.json's "plan".
Json plan_json(const PlanResult& plan);

/// "this text is too small", or where more could be read "these samples are too few".
std::string too_little(const PlanResult& plan);

/// Fills plan.report. Rows: nll (or pseudo_nll) of "full" and "planned", plan_step and plan_step_upper with
/// the number of the step as depth, plan_heads_out and plan_rank_qk, _ov, _kv by layer.
void add_report(PlanResult& plan, const PlanRequest& request, const Checkpoint& checkpoint,
                const ScanInput& input, double seconds);

}  // namespace rankscope
