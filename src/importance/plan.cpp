#include "importance/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "checkpoint/load.h"
#include "importance/candidates.h"
#include "importance/evaluator.h"
#include "importance/factored.h"
#include "importance/plan_report.h"
#include "importance/planned_model.h"
#include "importance/rank_curves.h"
#include "importance/savings.h"
#include "importance/sharing.h"
#include "importance/side_files.h"
#include "parts/parameters.h"
#include "pass/input.h"
#include "pass/readout.h"
#include "pass/scanned_model.h"

namespace rankscope {
namespace {

constexpr size_t kOrderedBy = 8;   // at most so many samples order the candidates, and a quarter of them
constexpr size_t kFewest = 6;      // samples: one is held out, one orders, and kFewSamples search
constexpr int kMostRefusals = 12;  // one after the other: those behind them cost more

class Planner {
 public:
  Planner(const PlanRequest& request, const ProgressCallback& progress)
      : request_(request), progress_(progress), checkpoint_(request.scan.model) {}

  PlanResult run() {
    const auto start = std::chrono::steady_clock::now();
    read();
    candidates_ = candidates_of(checkpoint_, result_.notes);
    if (candidates_.empty())
      throw Error("no head and no map of this model can be written back changed")
          .in(request_.scan.model.string());
    order();
    search();
    share();
    describe();
    result_.held_out = loss_of(held_out_);
    result_.all = loss_of(all_);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    add_report(result_, request_, checkpoint_, input_, seconds.count());
    return std::move(result_);
  }

  void write(const std::filesystem::path& folder) const {
    write_planned_model(checkpoint_, *source_, edits_, input_.samples, folder);
  }

 private:
  const ModelSpec& spec() const { return checkpoint_.spec(); }

  void read() {
    const ScanRequest& r = request_.scan;
    if (!spec().sources.empty())
      throw Error("a plan follows one stream, and this network has several")
          .in(r.model.string())
          .hint("rankscope scan --off head:cross.L0H0 measures what single heads are worth");
    if (spec().stored_blocks != spec().depth())
      throw Error("the layers of this model share their weights, so none can be changed alone")
          .in(r.model.string());
    input_ = read_input(r, spec());
    const size_t repeated = leave_out_repeats();
    all_.questions = questions_for(spec(), input_.samples, input_.mask, r.seed);
    const LossKind kind = all_.questions.kind;
    if (kind == LossKind::none && loss_kind(spec()) == LossKind::next_token)
      throw Error("a plan is judged by the loss, and no sample has a next token")
          .in(input_.description)
          .hint("samples of two tokens or more");
    if (kind == LossKind::none)
      throw Error("a plan is judged by the loss, and this model has none")
          .in(r.model.string())
          .hint(loss_kind(spec()) == LossKind::masked ? "a tokenizer that names its mask token"
                                                      : "a causal or masked language model with its head");
    result_.notes = input_.notes;
    if (repeated > 0) {
      std::erase_if(result_.notes, [](const std::string& note) { return note.ends_with(kRepeatsCount); });
      result_.notes.push_back(
          fmt::format("{} samples that repeat an earlier one were left out: what was searched on "
                      "proves nothing where it is held out",
                      repeated));
    }
    note_unused(checkpoint_, result_.notes);
    if (request_.write)
      for (std::string& note : side_files(checkpoint_.folder()).notes)
        result_.notes.push_back(std::move(note));
    result_.more_to_read = input_.unread > 0 || r.random_tokens;
    note_unasked(keep_asked(all_.questions, all_.numbers), result_.notes);
    const size_t count = all_.numbers.size(), last = std::max<size_t>(1, count / 5), searched = count - last;
    if (count < kFewest)
      throw usage_error(fmt::format("a plan needs at least {} samples{}, and there are {}", kFewest,
                                    repeated > 0 ? " that differ" : "", count))
          .hint(result_.more_to_read ? "a larger --samples"
                                     : "a longer text: one sample per line, or --whole");
    const size_t few = std::clamp<size_t>(searched / 4, 1, kOrderedBy);
    std::vector<size_t> order, search, held_out;
    for (size_t i = 0; i < count; ++i)  // those that order are spread over the texts of the search
      (i >= searched ? held_out : i * few % searched < few ? order : search).push_back(i);
    order_ = picked(order);
    search_ = picked(search);
    held_out_ = picked(held_out);
    source_ = checkpoint_source(checkpoint_, r.dtype, r.device);
    result_.architecture = spec().architecture;
    result_.budget = request_.budget;
    result_.parameters = parameter_count(spec());
    if (spec().output.tied) result_.parameters -= spec().output.vocabulary * spec().output.width;
  }

  // A sample that was searched on proves nothing where it stands once more. Gives how many there were.
  size_t leave_out_repeats() {
    std::set<std::pair<std::vector<int64_t>, std::vector<int64_t>>> seen;  // ids and types
    std::vector<Sample> kept;
    for (size_t i = 0; i < input_.samples.size(); ++i) {
      Sample& s = input_.samples[i];
      if (!seen.insert({s.ids, s.types}).second) continue;
      all_.numbers.push_back(static_cast<int64_t>(i));
      kept.push_back(std::move(s));
    }
    const size_t repeated = input_.samples.size() - kept.size();
    input_.samples = std::move(kept);
    return repeated;
  }

  // Some of the samples, and their numbers in the input.
  struct Part {
    Questions questions;
    std::vector<int64_t> numbers = {};
  };

  // These samples with what is asked of them: what is hidden in a sample does not depend on the others.
  Part picked(const std::vector<size_t>& which) const {
    const Questions& all = all_.questions;
    Part part{{all.kind, {}, {}}};
    Questions& q = part.questions;
    for (const size_t i : which) {
      q.samples.push_back(all.samples[i]);
      q.answers.places.push_back(all.answers.places[i]);
      q.answers.ids.push_back(all.answers.ids[i]);
      part.numbers.push_back(all_.numbers[i]);
    }
    return part;
  }

  std::unique_ptr<Evaluator> evaluator(const Part& part, bool parts) const {
    return std::make_unique<Evaluator>(Evaluator::Job{.source = *source_,
                                                      .questions = part.questions,
                                                      .batch_size = request_.scan.batch_size,
                                                      .seed = request_.scan.seed,
                                                      .device = request_.scan.device,
                                                      .parts = parts,
                                                      .group_bytes = 0,
                                                      .progress = progress_,
                                                      .numbers = part.numbers});
  }

  static Rise rise_of(const Evaluator& e, const Judged& j) {
    return paired_rise(e.full().loss, j.loss, e.asked());
  }

  // A network that overflows without a part cannot do without it; NaN has no place in an order.
  static double cost_of(const Evaluator& e, const Judged& j) {
    const double mean = rise_of(e, j).mean;
    return std::isfinite(mean) ? mean : std::numeric_limits<double>::infinity();
  }

  // What each candidate costs alone, on a few texts.
  void order() {
    const auto few = evaluator(order_, true);
    std::vector<Variation> variations;
    for (const Candidate& c : candidates_) variations.push_back(c.alone(spec()));
    const std::vector<Judged> judged = few->run(variations);
    for (size_t i = 0; i < candidates_.size(); ++i) candidates_[i].cost = cost_of(*few, judged[i]);
    for (const int64_t l : layers_that_can_share(spec()))
      sharers_.emplace_back(cost_of(*few, judge_shared(*few, {l})), l);
    std::stable_sort(sharers_.begin(), sharers_.end());
    count(*few);
  }

  // In passes of the search's samples.
  void count(const Evaluator& e) {
    result_.passes +=
        e.passes() * static_cast<double>(e.samples()) / static_cast<double>(search_.questions.samples.size());
  }

  // One measured step: whether the network is within the budget, at the level that this look may take.
  PlanStep look(const Evaluator& e, const Judged& judged, int64_t number,
                std::vector<std::string> what) const {
    PlanStep s{std::move(what), rise_of(e, judged)};
    s.upper = s.rise.upper(level_of_look(number));
    s.taken = s.upper <= request_.budget;
    s.undecided = !s.taken && s.rise.lower(level_of_look(number)) <= request_.budget;
    return s;
  }

  void search() {
    const auto judge = evaluator(search_, false);
    result_.search = loss_from(*judge, judge->full(), 0);
    const auto total = static_cast<int64_t>(candidates_.size());
    size_t size = 1;
    int64_t done = 0;
    int refused = 0;
    while (refused < kMostRefusals) {
      const std::vector<const Candidate*> step = next_candidates(candidates_, edits_, size, spec());
      if (step.empty()) break;
      std::vector<std::string> what;
      for (const Candidate* c : step) what.push_back(c->what());
      const Edits tried = with(edits_, step, spec());
      const Judged judged = judge->run({{tried.begin()->first, {}, Replacement::zero, tried}}).front();
      PlanStep s = look(*judge, judged, static_cast<int64_t>(result_.steps.size()) + 1, std::move(what));
      refused = s.taken || step.size() > 1 ? 0 : refused + 1;
      if (s.taken) {
        edits_ = tried;
        result_.search = loss_from(*judge, judged, s.upper);
        done += static_cast<int64_t>(step.size());
        size *= 2;
      } else if (step.size() == 1) {  // this one does not fit; another may
        candidates_.erase(candidates_.begin() + (step.front() - candidates_.data()));
        ++done;
      } else {
        size = std::max<size_t>(1, step.size() / 4);
      }
      if (progress_)
        progress_(done, total, fmt::format("loss +{:.4f} of {}", result_.search.rise.mean, request_.budget));
      result_.steps.push_back(std::move(s));
    }
    if (edits_.empty()) result_.undecided = undecided(result_.steps);
    count(*judge);
  }

  // Layers that read with the patterns of the one before, the cheapest first, one at a time.
  void share() {
    if (sharers_.empty()) return;
    const auto judge = evaluator(search_, false);
    SharingPlan& plan = result_.sharing;
    plan.search = loss_from(*judge, judge->full(), 0);
    int refused = 0;
    for (size_t i = 0; i < sharers_.size() && refused < kMostRefusals; ++i) {
      std::set<int64_t> tried = shared_;
      tried.insert(sharers_[i].second);
      const Judged judged = judge_shared(*judge, tried);
      PlanStep s = look(*judge, judged, static_cast<int64_t>(i) + 1,
                        {fmt::format("layer {} with the patterns of layer {}", sharers_[i].second,
                                     sharers_[i].second - 1)});
      refused = s.taken ? 0 : refused + 1;
      if (s.taken) {
        shared_ = tried;
        plan.search = loss_from(*judge, judged, s.upper);
      }
      plan.steps.push_back(std::move(s));
      if (progress_)
        progress_(static_cast<int64_t>(i) + 1, static_cast<int64_t>(sharers_.size()),
                  "layers that share patterns");
    }
    plan.saved = parameters_shared(spec(), shared_);
    count(*judge);
    const auto held = evaluator(held_out_, false);
    plan.held_out = loss_from(*held, judge_shared(*held, shared_));
  }

  // Why a search that took nothing did not: the step that more text would decide first.
  std::string undecided(const std::vector<PlanStep>& steps) const {
    const PlanStep* best = nullptr;
    double fewest = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      const double needed =
          steps[i].rise.samples_for(request_.budget, level_of_look(static_cast<int64_t>(i) + 1));
      if (!steps[i].undecided || (best != nullptr && needed >= fewest)) continue;
      best = &steps[i], fewest = needed;
    }
    if (best == nullptr) return "";
    const std::string most = !std::isfinite(best->upper) ? "any amount"
                             : std::fabs(best->upper) < 0.0005
                                 ? fmt::format("{:+.1g}", best->upper)  // not +0.000
                                 : fmt::format("{:+.3f}", best->upper);
    // A fifth of the samples is held out, and a quarter of the rest, at most kOrderedBy, orders.
    const double text = std::min(fewest / 0.6, (fewest + static_cast<double>(kOrderedBy)) / 0.8);
    std::string more = std::isfinite(text)
                           ? fmt::format("; about {:.0f} samples like these would decide", std::ceil(text))
                           : "; more samples would decide";
    if (result_.more_to_read) more += " (--samples reads more)";
    return fmt::format(
        "{} to decide: {} raised the loss by {:+.4f} nats on {} samples and may raise it by "
        "{}, with a budget of {}{}",
        too_little(result_), best->what.front(), best->rise.mean, search_.questions.samples.size(), most,
        request_.budget, more);
  }

  static PlannedLoss loss_from(const Evaluator& e, const Judged& j, std::optional<double> upper = {}) {
    PlannedLoss out;
    out.full = mean_over_tokens(e.full().loss, e.asked()).value;
    out.planned = mean_over_tokens(j.loss, e.asked()).value;
    out.rise = rise_of(e, j);
    out.upper = upper ? *upper : out.rise.upper(kHeldLevel);
    out.samples = std::count_if(e.asked().begin(), e.asked().end(), [](int64_t n) { return n > 0; });
    return out;
  }

  PlannedLoss loss_of(const Part& part) const {
    const auto e = evaluator(part, false);
    if (edits_.empty()) return loss_from(*e, e->full());
    return loss_from(*e, e->run({{edits_.begin()->first, {}, Replacement::zero, edits_}}).front());
  }

  void describe() {
    int64_t cache = 0, whole = 0;
    result_.rank_pattern = Json::object();
    for (int64_t l = 0; l < spec().depth(); ++l) {
      const BlockSpec& block = spec().blocks[static_cast<size_t>(l)];
      if (block.attention_branch() == nullptr) continue;
      PlannedLayer layer{.layer = l, .heads = block.attention().heads};
      layer.full_qk = full_rank(spec(), block, "qk");
      layer.full_ov = full_rank(spec(), block, "ov");
      layer.full_kv = full_rank(spec(), block, "kv");
      layer.shares = shared_.count(l) > 0;
      for (const auto& [cost, sharer] : sharers_) layer.can_share = layer.can_share || sharer == l;
      const FactoredSize before = factored_size(*block.attention_branch(), 0, spec().width);
      whole += before.cache;
      if (const auto edit = edits_.find(l); edit != edits_.end()) {
        const AttentionSpec& a = edit->second.spec.attention();
        layer.heads_out = a.heads_off;
        layer.qk = a.truncate_qk;
        layer.ov = a.truncate_ov;
        layer.kv = edit->second.kv_rank;
        const FactoredSize after =
            factored_size(*edit->second.spec.attention_branch(), layer.kv, spec().width);
        result_.saved += before.parameters - after.parameters;
        cache += before.cache - after.cache;
        result_.changes +=
            static_cast<int64_t>(layer.heads_out.size()) + (layer.qk > 0) + (layer.ov > 0) + (layer.kv > 0);
        if (layer.has_heads() && has_plain_maps(program_of(*block.attention_branch(), spec().width)))
          add_pattern(l, edit->second);
        else if (layer.has_heads())
          add_rows_left(l, edit->second);
      }
      result_.layers.push_back(std::move(layer));
    }
    result_.cache_saved = whole > 0 ? static_cast<double>(cache) / static_cast<double>(whole) : 0;
  }

  // The rank of every stored tensor that the edit changes. PEFT names modules; the tensors of a module are
  // its weight and its bias.
  void add_pattern(int64_t l, const BlockEdit& edit) {
    const AttentionSpec& a = edit.spec.attention();
    const StoredRanks ranks = stored_ranks(a, edit.kv_rank, spec().width);
    const bool out = !a.heads_off.empty();
    const bool unread = kv_heads_read(a) < a.kv_heads;
    const bool latent = edit.kv_rank > 0;
    struct Stored {
      bool q = false, k = false, v = false, o = false, changed = false;
    };
    std::map<std::string, Stored> tensors;  // a fused one serves several maps
    const auto add = [&](const char* parameter, bool Stored::*map, bool changed) {
      const auto place = checkpoint_.places().find(fmt::format("blocks.{}.attn.{}", l, parameter));
      if (place == checkpoint_.places().end()) return;
      Stored& tensor = tensors[place->second.tensor];
      tensor.*map = true;
      tensor.changed = tensor.changed || changed;
    };
    add("W_Q", &Stored::q, out || a.truncate_qk > 0);
    add("W_K", &Stored::k, unread || latent || a.truncate_qk > 0);
    add("W_V", &Stored::v, unread || latent || a.truncate_ov > 0);
    add("W_O", &Stored::o, out || a.truncate_ov > 0);
    for (const auto& [name, t] : tensors) {
      if (!t.changed) continue;
      const int64_t read = t.k && t.v ? ranks.kv : t.k ? ranks.k : t.v ? ranks.v : 0;
      const std::string module = name.substr(0, name.rfind(".weight"));
      // All maps of a fused tensor read the same tokens.
      result_.rank_pattern[module] = std::min((t.q ? ranks.q : 0) + read + (t.o ? ranks.o : 0), spec().width);
    }
  }

  // The same where heads alone can go: as many rows, or of the output columns, as those that stay have.
  void add_rows_left(int64_t l, const BlockEdit& edit) {
    const BranchSpec& branch = *edit.spec.attention_branch();
    std::map<std::string, int64_t> rows;  // by tensor: a fused one holds several maps
    for (const Parameter& p : program_of(branch, spec().width).parameters) {
      const auto place = checkpoint_.places().find(fmt::format("blocks.{}.{}", l, p.name));
      if (p.head_axis < 0 || !p.name.starts_with("attn.W_") || place == checkpoint_.places().end()) continue;
      const int64_t across = p.shape[static_cast<size_t>(1 - p.head_axis)];
      int64_t& rank = rows[place->second.tensor];
      rank = std::min(rank + needed_of(p, *branch.attention()) / across, across);
    }
    for (const auto& [name, rank] : rows) result_.rank_pattern[name.substr(0, name.rfind(".weight"))] = rank;
  }

  const PlanRequest request_;  // its own: the plan is written after the search
  const ProgressCallback progress_;
  Checkpoint checkpoint_;
  std::unique_ptr<WeightSource> source_;
  ScanInput input_;
  Part all_, order_, search_, held_out_;
  std::vector<Candidate> candidates_;
  Edits edits_;
  std::vector<std::pair<double, int64_t>> sharers_;  // cost alone, layer
  std::set<int64_t> shared_;
  PlanResult result_;
};

}  // namespace

PlanResult make_plan(const PlanRequest& request, const ProgressCallback& progress) {
  if (!(request.budget >= 0) || !std::isfinite(request.budget))
    throw usage_error("--budget must be a number of nats, 0 or more");
  prepare_run(request.scan);
  const auto planner = std::make_shared<Planner>(request, progress);
  PlanResult plan = planner->run();
  plan.write = [planner](const std::filesystem::path& folder) { planner->write(folder); };
  return plan;
}

}  // namespace rankscope
