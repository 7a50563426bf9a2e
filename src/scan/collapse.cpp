#include "scan/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/stats.h"
#include "scan/collapse_parts.h"
#include "scan/manifest.h"
#include "scan/output.h"
#include "scan/pass.h"
#include "scan/subject.h"
#include "scan/variants.h"

namespace rankscope {

std::string collapse_site(int depth) {
  return depth == 0 ? "blocks.0.hook_resid_pre" : fmt::format("blocks.{}.hook_resid_post", depth - 1);
}
int collapse_layer(int depth) { return std::max(0, depth - 1); }

namespace {

class Collapse {
 public:
  Collapse(const CollapseRequest& request, const ProgressCallback& progress)
      : request_(request),
        progress_(progress),
        subject_(request.scan, request.init),
        input_(subject_.input()) {
    const bool split = request.arithmetic == "split";
    const std::string preset = !request.preset.empty() ? request.preset : split ? "paper" : "factorial";
    factorial_ = preset == "factorial";
    variants_ = collapse_variants(spec(), preset, request.positions);
    result_.spec = spec();
    result_.notes = input_.notes;
  }

  ScanResult run() {
    const auto start = std::chrono::steady_clock::now();
    if (request_.arithmetic == "split") {
      split();
    } else {
      plain(variants_, request_.arithmetic, "");
    }
    for (const CollapseVariant& v : variants_) published(v.name);
    if (factorial_) who_holds_the_rank_up();
    if (request_.theory) theory();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ScanRequest said = request_.scan;
    said.dtype = request_.arithmetic;
    std::vector<std::string> names;
    for (const CollapseVariant& v : variants_) names.push_back(v.name);
    result_.manifest = make_manifest(said, subject_.checkpoint(), input_, result_, names, seconds.count());
    if (!request_.init.empty()) result_.manifest["init"] = request_.init;
    return std::move(result_);
  }

 private:
  const ModelSpec& spec() const { return subject_.spec(); }
  int depth() const { return static_cast<int>(spec().depth()); }

  // The observed pass, in the machine's own arithmetic; `mark` goes behind the names.
  void plain(const std::vector<CollapseVariant>& variants, const std::string& dtype,
             const std::string& mark) {
    const auto source = subject_.source(dtype, request_.scan.seed);
    PassPlan plan;
    for (const CollapseVariant& v : variants) plan.variants.push_back({v.name + mark, v.spec, 0, 0});
    plan.sources = {source.get()};
    plan.inputs.push_back(make_batches(input_.samples, spec(), request_.scan.batch_size));
    std::vector<std::string> lenses{"residual"};
    if (request_.minimiser) lenses.emplace_back("residual_min");
    plan.lenses = choose_lenses(lenses);
    plan.layers = std::vector<bool>(static_cast<size_t>(depth()), true);
    plan.seed = request_.scan.seed;
    const std::vector<FinalState> states = run_pass(plan, result_.table, result_.notes, progress_);
    std::vector<const FinalState*> others;
    for (const FinalState& state : states)
      if (&state != &states.front()) others.push_back(&state);
    if (mark.empty()) compare_outputs(states.front(), plan, others, plan, result_.table, result_.notes);
    const double floor = 2 * (dtype == "float64" ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon());
    result_.table.rows.push_back({mark.empty() ? "full" : "float32", "", -1, -1, "noise_floor", floor});
    for (const CollapseVariant& v : variants) derive(v.name + mark, floor);
  }

  void split() {
    const auto source = subject_.source("float64", request_.scan.seed);
    split_curves(variants_, *source, make_batches(input_.samples, spec(), 1), result_.table, progress_);
    for (const CollapseVariant& v : variants_) derive(v.name, 0.0);
    // What plain arithmetic makes of the same network: the first variant must not fail, so the whole one
    // leads.
    std::vector<CollapseVariant> beside{variants_.front()};
    for (const CollapseVariant& v : variants_)
      if (!v.attention_skip && v.mlp == 0) beside.push_back(v);
    plain(beside, "float32", " float32");
  }

  const Row* at(const std::string& variant, const char* metric, int d) const {
    return result_.table.find(variant, metric, collapse_layer(d), -1, "all", collapse_site(d));
  }
  void put(const std::string& variant, const char* metric, int d, double value, double stderr_ = kNone,
           int64_t n = 0) {
    result_.table.rows.push_back(
        {variant, collapse_site(d), collapse_layer(d), -1, metric, value, stderr_, n, d, "all"});
  }

  // log10 of the relative residual; NaN below the floor.
  double log10_at(const std::string& variant, int d, double floor) const {
    if (const Row* r = at(variant, "residual_l1inf_rel_log10", d)) return r->value;
    const Row* r = at(variant, "residual_l1inf_rel", d);
    return r != nullptr && r->value > floor ? std::log10(r->value) : kNone;
  }

  void derive(const std::string& variant, double floor) {
    means(variant);
    for (int d = 2; d <= depth(); ++d) {
      const double a = log10_at(variant, d - 2, floor), b = log10_at(variant, d - 1, floor),
                   c = log10_at(variant, d, floor);
      const double exponent = (c - b) / (b - a);
      if (std::isfinite(exponent)) put(variant, "local_exponent", d, exponent);
    }
  }

  // The arithmetic mean over texts, which is what the paper plots.
  void means(const std::string& variant) {
    for (int d = 0; d <= depth(); ++d) {
      std::vector<double> values;
      const Name name(variant), site(collapse_site(d));
      for (const SampleRow& s : result_.table.samples)
        if (s.variant == name && s.site == site && s.metric == "residual_l1inf_rel" && s.tokens == "all")
          values.push_back(s.value);
      if (values.empty()) continue;
      const Estimate e = arithmetic_mean(values);
      put(variant, "residual_l1inf_rel_mean", d, e.value, e.stderr_, static_cast<int64_t>(values.size()));
    }
  }

  // Below this the published curves are float32's rounding, not the network.
  static constexpr double kPublishedFloor = 5e-7;

  void published(const std::string& variant) {
    if (spec().width != 768 || depth() != 12) return;  // the sizes they used
    const std::vector<PublishedPoint> curve =
        published_collapse(spec().architecture, request_.init.empty() ? "pretrained" : "init", variant);
    for (int d = 0; d < static_cast<int>(curve.size()); ++d) {
      const Row* ours = at(variant, "residual_l1inf_rel_mean", d);
      if (!(curve[static_cast<size_t>(d)].value > kPublishedFloor) || ours == nullptr) continue;
      put(variant, "published", d, curve[static_cast<size_t>(d)].value);
      put(variant, "published_ratio", d, ours->value / curve[static_cast<size_t>(d)].value);
    }
  }

  // Main effects on the last residual, over all variants that were followed to the end.
  void who_holds_the_rank_up() {
    const Row* floor_row = result_.table.find("full", "noise_floor", -1);
    const double floor = floor_row == nullptr ? 0 : floor_row->value;
    const auto level = [&](auto belongs) {
      std::vector<double> values;
      for (const CollapseVariant& v : variants_)
        if (const Row* r = at(v.name, "residual_l1inf_rel", depth()); r != nullptr && belongs(v))
          values.push_back(std::max(r->value, floor));
      return geometric_mean(values).value;
    };
    const auto say = [&](const char* what, double with, double without, const std::string& more) {
      const double ratio = with / without;
      const std::string verb = ratio > 2     ? "holds the rank up"
                               : ratio < 0.5 ? "takes rank away"
                                             : "does little";
      Finding f;
      f.topic = "support";
      f.sentence = fmt::format("{} {}: last residual {:.2g} with it, {:.2g} without{} (geometric means)",
                               what, verb, with, without, more);
      f.value = with;
      f.baseline = without;
      f.known = std::isfinite(ratio);
      result_.verdict.push_back(std::move(f));
    };
    say("the attention skip", level([](auto& v) { return v.attention_skip; }),
        level([](auto& v) { return !v.attention_skip; }), "");
    say("the MLP with its skip", level([](auto& v) { return v.mlp == 2; }),
        level([](auto& v) { return v.mlp == 0; }),
        fmt::format(", {:.2g} with the MLP but without its skip", level([](auto& v) { return v.mlp == 1; })));
    say("the norm", level([](auto& v) { return v.norm; }), level([](auto& v) { return !v.norm; }), "");
  }

  void theory() {
    const auto source = subject_.source("float64", request_.scan.seed);
    const Batch batch = make_batches({input_.samples.front()}, spec(), 1).front();
    for (Finding& f : collapse_theory(spec(), *source, batch, result_.table))
      result_.verdict.push_back(std::move(f));
  }

  const CollapseRequest& request_;
  const ProgressCallback& progress_;
  Subject subject_;
  ScanInput input_;
  std::vector<CollapseVariant> variants_;
  bool factorial_ = false;
  ScanResult result_;
};

}  // namespace

ScanResult measure_collapse(const CollapseRequest& request, const ProgressCallback& progress) {
  const std::vector<std::string> known{"float32", "float64", "split"};
  if (std::find(known.begin(), known.end(), request.arithmetic) == known.end())
    throw unknown_name("arithmetic", request.arithmetic, known, "rankscope collapse --help");
  if (request.arithmetic == "split" && request.minimiser)
    throw usage_error("--minimiser needs --arithmetic float32 or float64");
  if (request.arithmetic == "split" && request.scan.device != "cpu")
    throw usage_error("the split arithmetic runs on the CPU").in("--device " + request.scan.device);
  prepare_run(request.scan);
  return Collapse(request, progress).run();
}

}  // namespace rankscope
