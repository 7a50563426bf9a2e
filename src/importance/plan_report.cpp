#include "importance/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "pass/answers.h"
#include "pass/manifest.h"
#include "pass/output.h"

namespace rankscope {
namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

std::string_view to_string(Held held) {
  return held == Held::within ? "within" : held == Held::over ? "over" : "undecided";
}

Json loss_json(const PlannedLoss& l) {
  return {{"full", l.full},           {"planned", l.planned},
          {"gained", l.rise.mean},    {"stderr", number(l.rise.error)},
          {"upper", number(l.upper)}, {"samples", l.samples}};
}

Json steps_json(const std::vector<PlanStep>& steps) {
  Json out = Json::array();
  for (const PlanStep& s : steps)
    out.push_back({{"what", s.what},
                   {"gained", s.rise.mean},
                   {"stderr", number(s.rise.error)},
                   {"upper", number(s.upper)},
                   {"outcome", s.taken       ? "taken"
                               : s.undecided ? "undecided"
                                             : "too much"}});
  return out;
}

// "+0.0123 nats, at most +0.0191 (19 samples)"
std::string rise_text(const PlannedLoss& l) {
  return fmt::format("{:+.4f} nats, {} ({} samples)", l.rise.mean,
                     std::isfinite(l.upper) ? fmt::format("at most {:+.4f}", l.upper) : "with no upper bound",
                     l.samples);
}

struct Counts {
  size_t heads_out = 0, qk = 0, ov = 0, kv = 0;
  int64_t heads = 0;
  bool any() const { return heads_out + qk + ov + kv > 0; }
};

Counts counts_of(const PlanResult& plan) {
  Counts c;
  for (const PlannedLayer& l : plan.layers) {
    c.heads_out += l.heads_out.size();
    c.heads += l.heads;
    c.qk += l.qk > 0;
    c.ov += l.ov > 0;
    c.kv += l.kv > 0;
  }
  return c;
}

Finding what_goes(const PlanResult& plan, const Counts& c) {
  if (!c.any())
    return {
        .topic = "plan",
        .sentence =
            plan.undecided.empty()
                ? fmt::format("nothing can go within {} nats: each of {} changes that were tried costs more",
                              plan.budget, plan.steps.size())
                : plan.undecided,
        .known = plan.undecided.empty()};
  std::vector<std::string> parts;
  if (c.heads_out > 0)
    parts.push_back(fmt::format("{} of {} heads {}", c.heads_out, c.heads, c.heads_out == 1 ? "goes" : "go"));
  for (const auto& [name, count] : {std::pair("QK", c.qk), {"OV", c.ov}, {"KV", c.kv}})
    if (count > 0)
      parts.push_back(fmt::format("{} of {}", name,
                                  count == 1 ? "1 layer is cut" : fmt::format("{} layers are cut", count)));
  const double share =
      static_cast<double>(plan.saved) / static_cast<double>(std::max<int64_t>(1, plan.parameters));
  Finding f{.topic = "plan",
            .sentence = fmt::format("within {} nats {}: the loss changes by {}; {:.2f} % fewer parameters in "
                                    "factored form, {:.1f} % less cache of keys and values",
                                    plan.budget, fmt::join(parts, ", "), rise_text(plan.search), 100 * share,
                                    100 * plan.cache_saved)};
  f.value = plan.search.rise.mean;
  f.threshold = plan.budget;
  f.claims = {{"something goes", Claim::Answer::yes}};
  return f;
}

Held held_of(const PlannedLoss& l, double budget) { return held_against(l.rise, l.samples, budget); }

// "the last fifth of the samples ... is within the budget: +0.0123 nats, at most +0.0191 (6 samples)"
std::string held_text(const PlannedLoss& l, double budget) {
  const Held held = held_of(l, budget);
  const char* says = held == Held::within ? "is within the budget"
                     : held == Held::over
                         ? "is OVER the budget, so the samples of the search do not speak for others"
                         : "has too few samples to say whether the budget holds";
  return fmt::format("the last fifth of the samples, which the search never read, {}: {}", says,
                     rise_text(l));
}

Finding what_held_out_says(const PlannedLoss& l, double budget) {
  Finding f{
      .topic = "held out", .sentence = held_text(l, budget), .known = held_of(l, budget) != Held::undecided};
  f.value = l.rise.mean;
  f.threshold = budget;
  return f;
}

Finding what_shares(const PlanResult& plan) {
  std::vector<int64_t> layers;
  bool undecided = false;
  for (const PlannedLayer& l : plan.layers)
    if (l.shares) layers.push_back(l.layer);
  for (const PlanStep& s : plan.sharing.steps) undecided = undecided || s.undecided;
  Finding f{.topic = "sharing", .sentence = ""};
  if (layers.empty()) {
    f.known = !undecided;
    f.sentence = undecided
                     ? fmt::format(
                           "{} to say whether a layer could read with the patterns of the layer "
                           "before: more{} would decide",
                           too_little(plan), plan.more_to_read ? " (--samples)" : " samples")
                     : fmt::format("no layer could read with the patterns of the layer before within {} nats",
                                   plan.budget);
    return f;
  }
  f.known = held_of(plan.sharing.held_out, plan.budget) != Held::undecided;
  f.sentence = fmt::format(
      "by the samples of the search layer{} {} could read with the patterns of the layer before: instead of "
      "the plan, not on top of it, and the loss changes by {}; {}. {} parameters fewer; no architecture has "
      "a word for it, so it is not written",
      layers.size() == 1 ? "" : "s", fmt::join(layers, ", "), rise_text(plan.sharing.search),
      held_text(plan.sharing.held_out, plan.budget), plan.sharing.saved);
  f.value = plan.sharing.held_out.rise.mean;
  f.threshold = plan.budget;
  return f;
}

void add_rows(const PlanResult& plan, const ModelSpec& spec, ResultTable& table) {
  const std::string site = output_site(spec);
  const std::string loss = loss_metric(loss_kind(spec));
  const auto row = [&](const char* variant, const std::string& metric, int64_t layer, double value,
                       double error, int64_t n, int64_t depth = -1) {
    table.rows.push_back({variant, layer < 0 ? site : fmt::format("blocks.{}.attn.hook_result", layer),
                          static_cast<int32_t>(layer), -1, metric, value, error, n,
                          static_cast<int32_t>(depth), "all"});
  };
  row("full", loss, -1, plan.all.full, kNone, plan.all.samples);
  row("planned", loss, -1, plan.all.planned, kNone, plan.all.samples);
  for (const auto& [metric, l] : {std::pair("plan_loss_search", &plan.search),
                                  {"plan_loss_held_out", &plan.held_out},
                                  {"plan_loss_all", &plan.all}})
    row("planned", metric, -1, l->rise.mean, l->rise.error, l->samples);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    row("planned", "plan_step", -1, s.rise.mean, s.rise.error, plan.search.samples,
        static_cast<int64_t>(i) + 1);
    row("planned", "plan_step_upper", -1, s.upper, kNone, plan.search.samples, static_cast<int64_t>(i) + 1);
  }
  for (const PlannedLayer& l : plan.layers) {
    row("planned", "plan_heads_out", l.layer, static_cast<double>(l.heads_out.size()), kNone, 1);
    row("planned", "plan_rank_qk", l.layer, static_cast<double>(l.left(l.qk, l.full_qk)), kNone, 1);
    row("planned", "plan_rank_ov", l.layer, static_cast<double>(l.left(l.ov, l.full_ov)), kNone, 1);
    row("planned", "plan_rank_kv", l.layer, static_cast<double>(l.left(l.kv, l.full_kv)), kNone, 1);
  }
}

}  // namespace

std::string too_little(const PlanResult& plan) {
  return plan.more_to_read ? "these samples are too few" : "this text is too small";
}

Json plan_json(const PlanResult& plan) {
  Json out{{"architecture", plan.architecture},
           {"budget", plan.budget},
           {"layers", Json::array()},
           {"steps", steps_json(plan.steps)},
           {"search", loss_json(plan.search)},
           {"held_out", loss_json(plan.held_out)},
           {"held_out_says",
            counts_of(plan).any() ? to_string(held_of(plan.held_out, plan.budget)) : "nothing changed"},
           {"all", loss_json(plan.all)},
           {"sharing",
            {{"steps", steps_json(plan.sharing.steps)},
             {"parameters_saved", plan.sharing.saved},
             {"search", loss_json(plan.sharing.search)},
             {"held_out", loss_json(plan.sharing.held_out)},
             {"held_out_says", plan.sharing.saved > 0 ? to_string(held_of(plan.sharing.held_out, plan.budget))
                                                      : "nothing changed"}}},
           {"undecided", plan.undecided},
           {"changes", plan.changes},
           {"parameters", plan.parameters},
           {"parameters_saved", plan.saved},
           {"cache_saved", plan.cache_saved},
           {"rank_pattern", plan.rank_pattern},
           {"passes", plan.passes},
           {"notes", plan.notes}};
  for (const PlannedLayer& l : plan.layers)
    out["layers"].push_back({{"layer", l.layer},
                             {"heads", l.heads},
                             {"heads_out", l.heads_out},
                             {"qk", l.left(l.qk, l.full_qk)},
                             {"ov", l.left(l.ov, l.full_ov)},
                             {"kv", l.left(l.kv, l.full_kv)},
                             {"full_qk", l.full_qk},
                             {"full_ov", l.full_ov},
                             {"full_kv", l.full_kv},
                             {"shares", l.shares}});
  return out;
}

void add_report(PlanResult& plan, const PlanRequest& request, const Checkpoint& checkpoint,
                const ScanInput& input, double seconds) {
  ScanResult& report = plan.report;
  report.spec = checkpoint.spec();
  report.notes = plan.notes;
  add_rows(plan, checkpoint.spec(), report.table);
  const Counts counts = counts_of(plan);
  report.verdict.push_back(what_goes(plan, counts));
  if (counts.any()) report.verdict.push_back(what_held_out_says(plan.held_out, plan.budget));
  if (!plan.sharing.steps.empty()) report.verdict.push_back(what_shares(plan));
  report.manifest = make_manifest(request.scan, &checkpoint, input, report, {"full", "planned"}, seconds);
  report.manifest["plan"] = plan_json(plan);
}

}  // namespace rankscope
