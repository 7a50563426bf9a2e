#include "collapse/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "collapse/parts.h"
#include "pass/manifest.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "pass/precision.h"
#include "pass/scanned_model.h"
#include "pass/variants.h"

namespace rankscope {

std::string collapse_site(int depth) {
  return depth == 0 ? "blocks.0.hook_resid_pre" : fmt::format("blocks.{}.hook_resid_post", depth - 1);
}
int collapse_layer(int depth) { return std::max(0, depth - 1); }

namespace {

class Collapse {
 public:
  Collapse(const CollapseRequest& request, const ProgressCallback& progress)
      : request_(request), progress_(progress), model_(request.scan, request.init), input_(model_.input()) {
    const bool split = request.arithmetic == "split";
    const std::string preset = !request.preset.empty() ? request.preset : split ? "paper" : "factorial";
    factorial_ = preset == "factorial";
    variants_ = collapse_variants(spec(), preset, {request.frozen_norm, request.positions});
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
    compare_with_published();
    if (factorial_)
      who_holds_the_rank_up(spec(), variants_, {request_.arithmetic, request_.positions, floor_},
                            result_.table, result_.verdict);
    if (request_.theory) theory();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ScanRequest said = request_.scan;
    said.dtype = request_.arithmetic;
    std::vector<std::string> names;
    for (const CollapseVariant& v : variants_) names.push_back(v.name);
    result_.manifest = make_manifest(said, model_.checkpoint(), input_, result_, names, seconds.count());
    add_precision(result_.manifest, said, spec(), *model_.source("float32", request_.scan.seed),
                  make_batches({input_.samples.front()}, spec(), 1).front());
    if (!request_.init.empty()) result_.manifest["init"] = request_.init;
    if (request_.networks > 1) result_.manifest["networks"] = request_.networks;
    return std::move(result_);
  }

 private:
  const ModelSpec& spec() const { return model_.spec(); }
  int depth() const { return static_cast<int>(spec().depth()); }
  int64_t texts() const { return static_cast<int64_t>(input_.samples.size()); }

  // One table of what `measure` gives for each network.
  void each_network(
      const std::string& dtype,
      const std::function<void(WeightSource&, ResultTable&, const ProgressCallback&)>& measure) {
    std::vector<ResultTable> tables(static_cast<size_t>(request_.networks));
    for (size_t k = 0; k < tables.size(); ++k) {
      const auto source = model_.source(dtype, request_.scan.seed + k);
      const auto report = [&](int64_t done, int64_t total, const std::string& what) {
        if (progress_)
          progress_(done + static_cast<int64_t>(k) * total, total * request_.networks,
                    tables.size() == 1 ? what : fmt::format("network {}, {}", k + 1, what));
      };
      measure(*source, tables[k], report);
    }
    ResultTable all = tables.size() == 1 ? std::move(tables.front()) : over_networks(tables, texts());
    auto& rows = result_.table.rows;
    auto& samples = result_.table.samples;
    rows.insert(rows.end(), all.rows.begin(), all.rows.end());
    samples.insert(samples.end(), all.samples.begin(), all.samples.end());
  }

  // The observed pass, in the machine's own arithmetic; `mark` goes behind the names.
  void plain(const std::vector<CollapseVariant>& variants, const std::string& dtype,
             const std::string& mark) {
    PassPlan plan;
    for (const CollapseVariant& v : variants)
      plan.variants.push_back({v.name + mark, v.spec, 0, 0, v.held_norms});
    plan.inputs.push_back(make_batches(input_.samples, spec(), request_.scan.batch_size));
    std::vector<std::string> lenses{"residual"};
    if (request_.minimiser) lenses.emplace_back("residual_min");
    plan.lenses = choose_lenses(lenses);
    plan.layers = std::vector<bool>(static_cast<size_t>(depth()), true);
    plan.seed = request_.scan.seed;
    plan.device = request_.scan.device;
    each_network(dtype, [&](WeightSource& source, ResultTable& table, const ProgressCallback& report) {
      plan.sources = {&source};
      std::vector<std::string> notes;
      const std::vector<FinalState> states = run_pass(plan, table, notes, report);
      std::vector<const FinalState*> others;
      for (const FinalState& state : states)
        if (&state != &states.front()) others.push_back(&state);
      if (mark.empty()) compare_outputs(states.front(), plan, others, plan, table, notes);
      for (std::string& note : notes)
        if (std::find(result_.notes.begin(), result_.notes.end(), note) == result_.notes.end())
          result_.notes.push_back(std::move(note));
    });
    const double floor = 2 * (dtype == "float64" ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon());
    for (const CollapseVariant& v : variants) derive(v.name + mark, floor);
    draw_floor(dtype + " rounding", floor);
    if (mark.empty()) floor_ = floor;
  }

  // The noise floor, and as a curve of its own, so that a figure of the others can draw it.
  void draw_floor(const std::string& name, double floor) {
    result_.table.rows.push_back({name, "", -1, -1, "noise_floor", floor});
    for (int d = 0; d <= depth(); ++d) put(name, "residual_l1inf_rel_decades", d, -std::log10(floor));
  }

  void split() {
    const std::vector<Batch> batches = make_batches(input_.samples, spec(), 1);
    each_network("float64", [&](WeightSource& source, ResultTable& table, const ProgressCallback& report) {
      split_curves(variants_, source, batches, table, report);
    });
    for (const CollapseVariant& v : variants_) derive(v.name, 0.0);
    // What plain arithmetic makes of the same network: the first variant must not fail, so the whole one
    // leads.
    std::vector<CollapseVariant> beside{variants_.front()};
    for (const CollapseVariant& v : variants_)
      if (!v.attention_skip && v.mlp == 0) beside.push_back(v);
    try {
      plain(beside, "float32", " float32");
    } catch (const Error& e) {  // what the split arithmetic found stands without it
      result_.notes.push_back(fmt::format("float32 beside it: {} at {}", e.message(), e.place()));
    }
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
    for (int d = 0; d <= depth(); ++d)
      if (const double log10 = log10_at(variant, d, 0.0); std::isfinite(log10))
        put(variant, "residual_l1inf_rel_decades", d, -log10);
    for (int d = 2; d <= depth(); ++d) {
      const double a = log10_at(variant, d - 2, floor), b = log10_at(variant, d - 1, floor),
                   c = log10_at(variant, d, floor);
      const double exponent = (c - b) / (b - a);
      if (std::isfinite(exponent)) put(variant, "local_exponent", d, exponent);
    }
  }

  // The arithmetic mean over texts, which is what the paper plots, and how far they scatter.
  void means(const std::string& variant) {
    for (int d = 0; d <= depth(); ++d) {
      const Spread s = spread_of(result_.table, variant, d, texts());
      if (s.draws == 0) continue;
      put(variant, "residual_l1inf_rel_mean", d, s.mean.value, s.mean.stderr_, s.draws);
      if (std::isfinite(s.texts_sd)) put(variant, "residual_l1inf_rel_sd_texts", d, s.texts_sd);
      if (std::isfinite(s.networks_sd)) put(variant, "residual_l1inf_rel_sd_networks", d, s.networks_sd);
    }
  }

  void compare_with_published() {
    if (spec().width != 768 || depth() != 12) return;  // the sizes they used
    PublishedTally tally;
    tally.theirs_sd = published_networks_sd(spec().architecture);
    for (const CollapseVariant& v : variants_) {
      const std::vector<PublishedPoint> curve =
          published_collapse(spec().architecture, request_.init.empty() ? "pretrained" : "init", v.name);
      for (int d = 0; d < static_cast<int>(curve.size()); ++d) {
        const PublishedPoint& p = curve[static_cast<size_t>(d)];
        const Row* mean = at(v.name, "residual_l1inf_rel_mean", d);
        if (!(p.value > kPublishedFloor) || mean == nullptr) continue;
        const double ours = mean->value;  // the rows move when more come
        put(v.name, "published", d, p.value);
        put(v.name, "published_sd", d, p.largest_std);
        put(v.name, "published_ratio", d, ours / p.value);
        const Row* sd = at(v.name, "residual_l1inf_rel_sd_networks", d);
        if (sd != nullptr) tally.add(fmt::format("{} {}", v.name, d), p, ours, sd->value);
      }
    }
    if (tally.cells > 0) result_.verdict.push_back(tally.said(request_.networks));
  }

  void theory() {
    const auto source = model_.source("float64", request_.scan.seed);
    const Batch batch = make_batches({input_.samples.front()}, spec(), 1).front();
    const char* of_what = request_.networks > 1 ? "the first network and text" : "the first text";
    for (Finding& f : collapse_theory(spec(), *source, batch, of_what, result_.table))
      result_.verdict.push_back(std::move(f));
  }

  const CollapseRequest& request_;
  const ProgressCallback& progress_;
  ScannedModel model_;
  ScanInput input_;
  std::vector<CollapseVariant> variants_;
  bool factorial_ = false;
  double floor_ = 0;  // of the arithmetic that was asked for; split arithmetic has none
  ScanResult result_;
};

}  // namespace

ScanResult measure_collapse(const CollapseRequest& request, const ProgressCallback& progress) {
  const std::vector<std::string> known{"float32", "float64", "split"};
  if (std::find(known.begin(), known.end(), request.arithmetic) == known.end())
    throw unknown_name("arithmetic", request.arithmetic, known, "rankscope collapse --help");
  if (request.arithmetic == "split" && (request.minimiser || request.frozen_norm))
    throw usage_error(fmt::format("{} needs --arithmetic float32 or float64",
                                  request.minimiser ? "--minimiser" : "--frozen-norm"));
  if (request.networks < 1 || request.networks > kMostNetworks)
    throw usage_error(
        fmt::format("--networks should be from 1 to {}, not {}", kMostNetworks, request.networks));
  if (request.networks > 1 && request.init.empty())
    throw usage_error("--networks draws several networks of a shape").hint("--init bert-base");
  if (request.arithmetic == "split" && request.scan.device != "cpu")
    throw usage_error("the split arithmetic runs on the CPU").in("--device " + request.scan.device);
  ScanRequest asked = request.scan;
  asked.dtype = request.arithmetic == "split" ? "float64" : request.arithmetic;
  prepare_run(asked);
  return Collapse(request, progress).run();
}

}  // namespace rankscope
