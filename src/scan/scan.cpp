#include "scan/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "checkpoint/load.h"
#include "collapse/parts.h"
#include "importance/importance.h"
#include "model/random_source.h"
#include "pass/file_hashes.h"
#include "pass/input.h"
#include "pass/manifest.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "pass/precision.h"
#include "pass/readout.h"
#include "pass/same_vocabulary.h"
#include "pass/scanned_model.h"
#include "pass/variants.h"
#include "paths/shares.h"
#include "scan/ablate.h"
#include "scan/lengths.h"
#include "scan/use.h"

namespace rankscope {
namespace {

// What --off takes out of one layer or one length after another, not of the network.
constexpr const char *kTokens = "tokens", *kLength = "length";

class Scan {
 public:
  Scan(const ScanRequest& request, const ProgressCallback& progress)
      : request_(request),
        progress_(progress),
        checkpoint_(request.model),
        input_(read_input(request, spec())) {
    result_.spec = spec();
    result_.notes = input_.notes;
    hashes_ = std::make_unique<BackgroundHashes>(weight_files(checkpoint_));
  }

  ScanResult run() {
    const auto start = std::chrono::steady_clock::now();
    main_pass();
    if (request_.baseline) baseline();
    if (request_.ablate.find("heads") != std::string::npos || request_.ablate == "all")
      ablate_heads(
          {*source_, plan_.inputs.front(), plan_.layers, request_.thresholds, progress_, request_.device},
          result_.table, result_.notes, names_);
    const Ablation at{*source_,  plan_.inputs.front(), plan_.layers, request_.thresholds,
                      progress_, request_.device};
    if (asked(kTokens)) measure_use(at, result_.table, result_.notes);
    if (asked(kLength)) measure_lengths(at, input_.samples, request_, result_.table, result_.notes);
    if (wants_importance(request_))
      add_importance({request_, *source_, input_.samples, input_.mask, progress_}, result_.table,
                     result_.notes);
    if (request_.show && request_.lenses.empty()) paths_of_shown_sample();
    result_.verdict = judge(result_.table, spec(), request_.thresholds,
                            {shortest_content(), request_.dtype == "float64" ? 0x1p-52 : 0x1p-23});
    if (request_.show && request_.lenses.empty()) theory_of_shown_sample();
    if (!request_.lenses.empty())
      std::erase_if(result_.verdict, [](const Finding& f) { return !f.measured; });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result_.manifest = make_manifest(request_, &checkpoint_, input_, result_, names_, seconds.count());
    add_precision(result_.manifest, request_, spec(), *source_, plan_.inputs.front().front());
    return std::move(result_);
  }

 private:
  const ModelSpec& spec() const { return checkpoint_.spec(); }
  bool asked(const char* what) const {
    return std::find(request_.off.begin(), request_.off.end(), what) != request_.off.end();
  }

  void main_pass() {
    source_ = checkpoint_source(checkpoint_, request_.dtype, request_.device);
    ScanRequest parts = request_;
    std::erase_if(parts.off, [](const std::string& p) { return p == kTokens || p == kLength; });
    plan_.variants = make_variants(parts, spec());
    plan_.sources = {source_.get()};
    plan_.inputs.push_back(make_batches(input_.samples, spec(), request_.batch_size));
    plan_.lenses = choose_lenses(request_.lenses);
    plan_.layers = parse_layers(request_.layers, spec().depth());
    plan_.seed = request_.seed;
    plan_.device = request_.device;
    plan_.sink = request_.thresholds["sink"];
    if (request_.null_models) add_null_models();
    for (const Variant& v : plan_.variants) names_.push_back(v.name);
    if (request_.show) show_first_sample();
    states_ = run_pass(plan_, result_.table, result_.notes, progress_);
    std::vector<const FinalState*> others;
    for (const FinalState& state : states_) {
      if (&state == &full()) continue;
      // Another order of tokens has no token-by-token comparison.
      if (plan_.variants[state.variants.front()].input == 0) others.push_back(&state);
    }
    compare_outputs(full(), plan_, others, plan_, result_.table, result_.notes);
    same_as_full();
    losses(states_, plan_);
    if (shown_) result_.arrays = shown_->finish();
  }

  // What every network says of tokens it is asked for; a masked model reads its text once more, with holes.
  void losses(const std::vector<FinalState>& states, const PassPlan& plan) {
    const ModelSpec& asked = plan.sources.front()->spec();
    std::vector<Questions> questions{questions_for(asked, input_.samples, input_.mask, request_.seed)};
    if (plan.inputs.size() > 1)
      questions.push_back(
          questions_for(asked, shuffled(input_.samples, request_.seed), input_.mask, request_.seed));
    if (loss_kind(asked) == LossKind::masked && questions.front().kind == LossKind::none)
      result_.notes.emplace_back("no loss is given: the mask token is not known");
    if (questions.front().kind != LossKind::masked) return add_losses(states, plan, questions, result_.table);
    PassPlan hidden = plan;
    hidden.lenses.clear();
    hidden.shown = nullptr;
    hidden.inputs.clear();
    for (const Questions& q : questions)
      hidden.inputs.push_back(make_batches(q.samples, asked, request_.batch_size));
    ResultTable none;
    std::vector<std::string> said;
    add_losses(run_pass(hidden, none, said, progress_), hidden, questions, result_.table);
  }

  // Only what some lens reads anyway: a report must not make a scan dearer than it was asked to be.
  void show_first_sample() {
    int64_t length = 0;
    for (const Batch& b : plan_.inputs.front())
      for (int64_t s = 0; s < b.count(); ++s)
        if (b.samples[static_cast<size_t>(s)] == kShownSample) length = b.length(s);
    const bool seen = std::any_of(plan_.lenses.begin(), plan_.lenses.end(),
                                  [](const Lens* lens) { return reads(*lens, "attn.hook_pattern"); });
    shown_ = std::make_unique<ReportSample>(spec(), length, plan_.layers,
                                            seen ? request_.patterns : std::nullopt, result_.notes);
    plan_.shown = shown_.get();
  }

  void paths_of_shown_sample() {
    const Batch shown = shown_sample();
    int64_t tokens = 0;
    for (const Batch& b : plan_.inputs.front())
      tokens += b.offsets.back() * static_cast<int64_t>(plan_.variants.size());
    try {
      add_path_shares(spec(), *source_, shown, tokens, result_.table, result_.notes);
    } catch (const Error& e) {  // activations that are not finite: the scan itself goes on
      result_.notes.push_back(fmt::format("paths by length were left out: {}", e.what()));
    }
  }

  // Where attention stands alone among the variants: what the cubic bound allows there, layer by layer.
  void theory_of_shown_sample() {
    const auto alone = [](const BlockSpec& b) { return b.branches.size() == 1 && !b.branches.front().skip; };
    if (std::none_of(plan_.variants.begin(), plan_.variants.end(), [&](const Variant& v) {
          return std::all_of(v.spec.blocks.begin(), v.spec.blocks.end(), alone);
        }))
      return;
    try {
      const auto source = checkpoint_source(checkpoint_, "float64", "cpu");
      for (Finding& f : collapse_theory(spec(), *source, shown_sample(), result_.table))
        result_.verdict.push_back(std::move(f));
    } catch (const Error& e) {
      result_.notes.push_back(fmt::format("the cubic bound was left out: {}", e.what()));
    }
  }

  Batch shown_sample() const {
    return make_batches({input_.samples[static_cast<size_t>(kShownSample)]}, spec(), 1).front();
  }

  const FinalState& full() const { return states_.front(); }

  // Variants that end in full's own state differ from it by exactly nothing.
  void same_as_full() {
    for (const size_t v : full().variants)
      if (v != 0) {
        result_.table.rows.push_back(
            {plan_.variants[v].name, output_site(spec()), -1, -1, output_metric(spec()), 0.0, 0.0,
             static_cast<int64_t>(input_.samples.size()), static_cast<int32_t>(spec().depth()), "all"});
        result_.notes.push_back(fmt::format("{} takes nothing out of this model", plan_.variants[v].name));
      }
  }

  void add_null_models() {
    random_ = random_source(spec(), request_.seed, request_.dtype, request_.device);
    plan_.sources.push_back(random_.get());
    plan_.variants.push_back({"null:init", spec(), 1, 0});
    if (spec().embedding.vocabulary > 0) {
      plan_.inputs.push_back(
          make_batches(shuffled(input_.samples, request_.seed), spec(), request_.batch_size));
      plan_.variants.push_back({"null:shuffled", spec(), 0, 1});
    }
  }

  void baseline() {
    const Checkpoint other(*request_.baseline);
    const auto source = checkpoint_source(other, request_.dtype, request_.device);
    if (other.spec().embedding.vocabulary == 0 && spec().embedding.vocabulary > 0)
      throw usage_error("the baseline reads images, the model tokens").in(request_.baseline->string());
    require_same_vocabulary(request_.model, *request_.baseline, input_.samples);
    PassPlan plan;
    plan.variants = {{"baseline", other.spec(), 0, 0}};
    plan.sources = {source.get()};
    plan.inputs.push_back(make_batches(input_.samples, other.spec(), request_.batch_size));
    plan.lenses = plan_.lenses;
    plan.layers = other.spec().depth() == spec().depth()
                      ? plan_.layers
                      : std::vector<bool>(static_cast<size_t>(other.spec().depth()), true);
    plan.seed = request_.seed;
    plan.device = request_.device;
    plan.sink = request_.thresholds["sink"];
    names_.emplace_back("baseline");
    std::vector<FinalState> states = run_pass(plan, result_.table, result_.notes, progress_);
    states.front().cut_into(plan_.inputs.front());  // either may have needed smaller batches
    compare_outputs(full(), plan_, {&states.front()}, plan, result_.table, result_.notes);
    losses(states, plan);
  }

  int64_t shortest_content() const {
    int64_t least = INT64_MAX;
    for (const Batch& b : plan_.inputs.front())
      for (int64_t s = 0; s < b.count(); ++s) {
        const auto first = b.content.begin() + b.offsets[static_cast<size_t>(s)];
        least = std::min<int64_t>(least, std::count(first, first + b.length(s), uint8_t{1}));
      }
    return least;
  }

  const ScanRequest& request_;
  const ProgressCallback& progress_;
  Checkpoint checkpoint_;
  ScanInput input_;
  std::unique_ptr<WeightSource> source_, random_;
  std::unique_ptr<ReportSample> shown_;
  PassPlan plan_;
  std::vector<FinalState> states_;
  std::vector<std::string> names_;
  ScanResult result_;
  std::unique_ptr<BackgroundHashes> hashes_;
};

}  // namespace

ScanResult scan(const ScanRequest& request, const ProgressCallback& progress) {
  prepare_run(request);
  check_importance(request);
  return Scan(request, progress).run();
}

}  // namespace rankscope
