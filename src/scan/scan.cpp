#include "scan/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "checkpoint/load.h"
#include "collapse/parts.h"
#include "importance/importance.h"
#include "importance/units.h"
#include "model/random_source.h"
#include "model/sites.h"
#include "model/streams.h"
#include "pass/file_hashes.h"
#include "pass/input.h"
#include "pass/manifest.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "pass/precision.h"
#include "pass/readout.h"
#include "pass/same_vocabulary.h"
#include "pass/scanned_model.h"
#include "pass/stream_verdict.h"
#include "pass/variants.h"
#include "paths/shares.h"
#include "scan/ablate.h"
#include "scan/fisher.h"
#include "scan/lengths.h"
#include "scan/use.h"

namespace rankscope {
namespace {

// What --off takes out of one layer or one length after another, not of the network.
constexpr const char *kTokens = "tokens", *kLength = "length", *kFisher = "fisher";

class Scan {
 public:
  Scan(const ScanRequest& request, const ProgressCallback& progress)
      : request_(request),
        progress_(progress),
        model_(without_off(request), request.init),
        baseline_(request.baseline ? std::make_unique<Checkpoint>(*request.baseline) : nullptr),
        plan_(asked_plan()),
        input_(read_input(request, spec())) {
    result_.spec = spec();
    result_.notes = input_.notes;
    if (model_.checkpoint() != nullptr) note_unused(*model_.checkpoint(), result_.notes);
    if (!spec().sources.empty() && (asked(kTokens) || asked(kLength) || asked(kFisher)))
      throw usage_error("--off tokens, length and fisher follow one stream, and this network has several")
          .in(request.model.string())
          .hint(
              fmt::format("{} is the encoder alone", (request.model / spec().sources.front().name).string()));
    if (wants_importance(request) && !spec().sources.empty())
      throw usage_error("--ablate and curves of --rank change one stream, and this network has several")
          .in(request.model.string())
          .hint(fmt::format("--off head:cross.L0H0 takes a head out; {} is the encoder alone",
                            (request.model / spec().sources.front().name).string()));
    if (request.null_models && !request.init.empty())
      throw usage_error("--null lays a network beside its random twin, and --init is one").in(request.init);
    if (baseline_) check_baseline();
    if (model_.checkpoint() != nullptr)
      hashes_ = std::make_unique<BackgroundHashes>(weight_files(*model_.checkpoint()));
  }

  ScanResult run() {
    const auto start = std::chrono::steady_clock::now();
    main_pass();
    if (baseline_) baseline();
    const Ablation at{*source_,  input_.samples, plan_.inputs.front(), plan_.layers, request_.thresholds,
                      progress_, request_.device};
    if (!request_.ablate.empty() && parse_kinds(request_.ablate).heads())
      ablate_heads(at, result_.table, result_.notes, names_);
    if (asked(kTokens)) measure_use(at, result_.table, result_.notes);
    if (asked(kFisher)) measure_fisher(at, request_.seed, result_.table);
    if (asked(kLength)) measure_lengths(at, input_.samples, request_, result_.table, result_.notes);
    if (wants_importance(request_))
      add_importance({request_, *source_, input_.samples, input_.mask, progress_}, result_.table,
                     result_.notes);
    name_stream_of_output();
    if (request_.show && request_.lenses.empty()) paths_of_report_sample();
    result_.verdict = judge_streams(result_.table, spec(), request_.thresholds, measured());
    if (request_.show && request_.lenses.empty()) theory_of_report_sample();
    if (!request_.lenses.empty())
      std::erase_if(result_.verdict, [](const Finding& f) { return !f.measured; });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result_.manifest = make_manifest(request_, model_.checkpoint(), input_, result_, names_, seconds.count());
    if (!request_.init.empty()) result_.manifest["init"] = request_.init;
    if (spec().sources.empty())
      add_precision(result_.manifest, request_, spec(), *source_, plan_.inputs.front().front());
    else
      add_precision(result_.manifest, request_, stream_alone(spec().sources.front(), spec()),
                    *stream_source(*source_, 0), plan_.streams.front().inputs.front().front());
    return std::move(result_);
  }

 private:
  const ModelSpec& spec() const { return model_.spec(); }

  bool asked(const char* what) const {
    return std::find(request_.off.begin(), request_.off.end(), what) != request_.off.end();
  }

  // Here a part taken out is a variant.
  static ScanRequest without_off(ScanRequest request) {
    request.off.clear();
    return request;
  }

  // The samples as batches of the plan's, and of those that the encoder of `spec` reads.
  void add_input(PassPlan& plan, const ModelSpec& spec, const std::vector<Sample>& samples,
                 const std::vector<Sample>& encoder) const {
    plan.inputs.push_back(make_batches(samples, spec, request_.batch_size));
    for (size_t k = 0; k < spec.sources.size(); ++k) {
      if (plan.streams.size() <= k) plan.streams.push_back({spec.sources[k].name, {}, {}});
      plan.streams[k].inputs.push_back(
          batches_like(plan.inputs.back(), encoder, stream_alone(spec.sources[k], spec)));
    }
  }

  // --layers counts the blocks of every stream.
  static std::vector<bool> chosen_layers(const ModelSpec& spec, const std::string& text) {
    int64_t most = spec.depth();
    for (const StreamSpec& s : spec.sources) most = std::max(most, s.depth());
    return parse_layers(text, most);
  }

  void choose_layers(PassPlan& plan, const ModelSpec& spec, const std::string& text) const {
    const std::vector<bool> chosen = chosen_layers(spec, text);
    const auto first = [&](int64_t n) { return std::vector(chosen.begin(), chosen.begin() + n); };
    plan.layers = first(spec.depth());
    for (size_t k = 0; k < spec.sources.size(); ++k) plan.streams[k].layers = first(spec.sources[k].depth());
  }

  static bool stands_alone(std::string_view part) {
    return part == kTokens || part == kLength || part == kFisher;
  }

  // What the words of the request say. Made before the input is read, so that a mistyped name is told first.
  PassPlan asked_plan() const {
    ScanRequest parts = request_;
    std::erase_if(parts.off, stands_alone);
    for (const std::string& off : parts.off)
      for (const std::string part : {kTokens, kLength, kFisher})
        if (const size_t at = ("+" + off + "+").find("+" + part + "+"); at != std::string::npos) {
          std::string others = off;
          others.erase(at == 0 ? 0 : at - 1, part.size() + 1);
          throw usage_error(fmt::format("{} measures the network as it is, and joins no other part", part))
              .in("--off " + off)
              .hint(fmt::format("each by itself: --off {} --off {}", part, others));
        }
    PassPlan plan;
    plan.variants = make_variants(parts, spec());
    plan.lenses = choose_lenses(request_.lenses);
    chosen_layers(spec(), request_.layers);
    return plan;
  }

  void main_pass() {
    source_ = model_.source(request_.dtype, request_.seed);
    plan_.sources = {source_.get()};
    add_input(plan_, spec(), input_.samples, input_.encoder);
    choose_layers(plan_, spec(), request_.layers);
    if (const auto chosen = chosen_layers(spec(), request_.layers);
        std::find(chosen.begin(), chosen.end(), false) != chosen.end())
      result_.notes.push_back(fmt::format(
          "--layers {}: what is said of layers and heads is about these alone{}", printable(request_.layers),
          wants_importance(request_) ? ", but for what --ablate and curves of --rank take out" : ""));
    plan_.seed = request_.seed;
    plan_.device = request_.device;
    plan_.sink = request_.thresholds["sink"];
    if (request_.null_models) add_null_models();
    for (const Variant& v : plan_.variants) names_.push_back(v.name);
    note_layers_without_patterns();
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
    take_arrays(report_sample_.get(), "");
    for (size_t k = 0; k < stream_samples_.size(); ++k)
      take_arrays(stream_samples_[k].get(), stream_prefix(spec().sources[k]));
  }

  // What is said of the output is said of the stream that ends in it.
  void name_stream_of_output() {
    if (plan_.stream.empty()) return;
    for (Row& row : result_.table.rows)
      if (row.stream == "") row.stream = plan_.stream;
    for (SampleRow& row : result_.table.samples)
      if (row.stream == "") row.stream = plan_.stream;
  }

  void take_arrays(ReportSample* report_sample, const std::string& prefix) {
    if (report_sample == nullptr) return;
    for (NamedArray& a : report_sample->finish(prefix)) result_.arrays.push_back(std::move(a));
  }

  static int64_t report_length(const std::vector<Batch>& batches) {
    for (const Batch& b : batches)
      for (int64_t s = 0; s < b.count(); ++s)
        if (b.samples[static_cast<size_t>(s)] == kShownSample) return b.length(s);
    return 0;
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
    if (model_.checkpoint() != nullptr && !model_.checkpoint()->missing_head().empty())
      result_.notes.push_back(fmt::format("no loss is given: {}{} is missing",
                                          model_.checkpoint()->config().contains("architectures")
                                              ? "config.json promises a head, and "
                                              : "of a head ",
                                          printable(model_.checkpoint()->missing_head().front())));
    if (questions.front().kind != LossKind::masked) return add_losses(states, plan, questions, result_.table);
    PassPlan hidden = plan;
    hidden.lenses.clear();
    hidden.report_sample = nullptr;
    hidden.inputs.clear();
    for (const Questions& q : questions)
      hidden.inputs.push_back(make_batches(q.samples, asked, request_.batch_size));
    ResultTable none;
    std::vector<std::string> said;
    add_losses(run_pass(hidden, none, said, progress_), hidden, questions, result_.table);
  }

  // Only what some lens reads anyway: a report must not make a scan dearer than it was asked to be.
  void show_first_sample() {
    const bool seen = patterns_are_read();
    const auto file = [&](const std::string& stream) -> std::optional<std::filesystem::path> {
      if (!seen || !request_.patterns || stream.empty()) return seen ? request_.patterns : std::nullopt;
      return request_.patterns->parent_path() /
             fmt::format("{}-{}.safetensors", request_.patterns->stem().string(), stream);
    };
    int64_t keys = 0;
    for (size_t k = 0; k < plan_.streams.size(); ++k) {
      StreamPlan& stream = plan_.streams[k];
      keys = report_length(stream.inputs.front());
      stream_samples_.push_back(std::make_unique<ReportSample>(
          stream_alone(spec().sources[k], spec()), keys, 0, stream.layers, file(stream.name), result_.notes));
      stream.report_sample = stream_samples_.back().get();
    }
    report_sample_ = std::make_unique<ReportSample>(spec(), report_length(plan_.inputs.front()), keys,
                                                    plan_.layers, file(""), result_.notes);
    plan_.report_sample = report_sample_.get();
  }

  bool patterns_are_read() const {
    return std::any_of(plan_.lenses.begin(), plan_.lenses.end(),
                       [](const Lens* lens) { return reads(*lens, "attn.hook_pattern"); });
  }

  // A sentence on patterns must not seem to speak of layers that have none.
  void note_layers_without_patterns() {
    if (!patterns_are_read()) return;
    const SiteInfo& pattern = site_named("attn.hook_pattern");
    std::vector<size_t> without;
    for (size_t l = 0; l < spec().blocks.size(); ++l)
      if (!pattern.present(spec(), spec().blocks[l])) without.push_back(l);
    if (!without.empty() && without.size() < spec().blocks.size())
      result_.notes.push_back(fmt::format(
          "{} of {} layers, the first of them layer {}, have no attention pattern: what is said of "
          "patterns and sinks is said of the others",
          without.size(), spec().blocks.size(), without.front()));
  }

  void paths_of_report_sample() {
    if (!spec().sources.empty()) {
      result_.notes.push_back(
          fmt::format("paths by length follow one stream and are not told of a decoder that reads another: "
                      "{} is the encoder alone",
                      (request_.model / spec().sources.front().name).string()));
      return;
    }
    const Batch report_sample = report_batch();
    int64_t tokens = 0;
    for (const Batch& b : plan_.inputs.front())
      tokens += b.offsets.back() * static_cast<int64_t>(plan_.variants.size());
    try {
      add_path_shares(spec(), *source_, report_sample, tokens, result_.table, result_.notes);
    } catch (const Error& e) {  // activations that are not finite: the scan itself goes on
      result_.notes.push_back(fmt::format("paths by length were left out: {}", e.what()));
    }
  }

  // Where attention stands alone among the variants: what the cubic bound allows there, layer by layer.
  void theory_of_report_sample() {
    const auto alone = [](const BlockSpec& b) { return b.branches.size() == 1 && !b.branches.front().skip; };
    if (!spec().sources.empty() ||
        std::none_of(plan_.variants.begin(), plan_.variants.end(), [&](const Variant& v) {
          return std::all_of(v.spec.blocks.begin(), v.spec.blocks.end(), alone);
        }))
      return;
    try {
      const auto source = model_.checkpoint() != nullptr
                              ? checkpoint_source(*model_.checkpoint(), "float64", "cpu")
                              : random_source(spec(), request_.seed, "float64", "cpu");
      for (Finding& f : collapse_theory(spec(), *source, report_batch(), "the first text", result_.table))
        result_.verdict.push_back(std::move(f));
    } catch (const Error& e) {
      result_.notes.push_back(fmt::format("the cubic bound was left out: {}", e.what()));
    }
  }

  Batch report_batch() const {
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
      add_input(plan_, spec(), shuffled(input_.samples, request_.seed),
                shuffled(input_.encoder, request_.seed));
      plan_.variants.push_back({"null:shuffled", spec(), 0, 1});
    }
  }

  void check_baseline() const {
    if (baseline_->spec().embedding.vocabulary == 0 && spec().embedding.vocabulary > 0)
      throw usage_error("the baseline reads images, the model tokens").in(request_.baseline->string());
    if (baseline_->spec().sources.size() != spec().sources.size())
      throw usage_error(
          "one of the model and its baseline has an encoder beside a decoder, the other has not")
          .in(request_.baseline->string());
    if (request_.init.empty()) require_same_vocabulary(request_.model, *request_.baseline, input_.samples);
  }

  void baseline() {
    const Checkpoint& other = *baseline_;
    const auto source = checkpoint_source(other, request_.dtype, request_.device);
    PassPlan plan;
    plan.variants = {{"baseline", other.spec(), 0, 0}};
    plan.sources = {source.get()};
    add_input(plan, other.spec(), input_.samples, input_.encoder);
    plan.lenses = plan_.lenses;
    choose_layers(plan, other.spec(), other.spec().depth() == spec().depth() ? request_.layers : "");
    plan.seed = request_.seed;
    plan.device = request_.device;
    plan.sink = request_.thresholds["sink"];
    names_.emplace_back("baseline");
    std::vector<FinalState> states = run_pass(plan, result_.table, result_.notes, progress_);
    states.front().cut_into(plan_.inputs.front());  // either may have needed smaller batches
    compare_outputs(full(), plan_, {&states.front()}, plan, result_.table, result_.notes);
    losses(states, plan);
  }

  static int64_t shortest_content(const std::vector<Batch>& batches) {
    int64_t least = INT64_MAX;
    for (const Batch& b : batches)
      for (int64_t s = 0; s < b.count(); ++s) {
        const auto first = b.content.begin() + b.offsets[static_cast<size_t>(s)];
        least = std::min<int64_t>(least, std::count(first, first + b.length(s), uint8_t{1}));
      }
    return least;
  }

  Measured measured() const {
    Measured out{shortest_content(plan_.inputs.front()), request_.dtype == "float64" ? 0x1p-52 : 0x1p-23,
                 plan_.not_finite};
    // The attention of one stream to another has its own tokens for queries, and the other's for keys.
    for (const StreamPlan& stream : plan_.streams) {
      const int64_t heard = shortest_content(stream.inputs.front());
      out.shortest_of[stream.name] = heard;
      out.shortest_of[kCrossStream] = std::min(heard, out.shortest);
    }
    return out;
  }

  const ScanRequest& request_;
  const ProgressCallback& progress_;
  ScannedModel model_;
  std::unique_ptr<Checkpoint> baseline_;
  PassPlan plan_;
  ScanInput input_;
  std::unique_ptr<WeightSource> source_, random_;
  std::unique_ptr<ReportSample> report_sample_;
  std::vector<std::unique_ptr<ReportSample>> stream_samples_;
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
