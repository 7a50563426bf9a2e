#include "importance/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "checkpoint/load.h"
#include "importance/evaluator.h"
#include "importance/planned_model.h"
#include "importance/rank_curves.h"
#include "importance/savings.h"
#include "parts/parameters.h"
#include "pass/input.h"
#include "pass/readout.h"
#include "pass/scanned_model.h"

namespace rankscope {
namespace {

constexpr size_t kRankedBy = 8;      // samples that order the candidates
constexpr double kLeastCost = 1e-6;  // nats: what costs less is free, and ordered by what it saves

// Something that could go: a head, or the ranks of a layer's map beyond `rank`.
struct Candidate {
  int64_t layer = 0;
  int64_t head = -1;
  std::string map = {};
  int64_t rank = 0;
  double cost = 0;   // of the loss, alone
  double saves = 0;  // parameters
  std::string what() const {
    if (head >= 0) return fmt::format("head L{}H{}", layer, head);
    const char* name = map == "qk" ? "QK" : map == "ov" ? "OV" : "KV";
    return fmt::format("{} of layer {} to rank {}", name, layer, rank);
  }
};

using Edits = std::map<int64_t, BlockEdit>;

double saved_by_rank(const ModelSpec& spec, const AttentionSpec& a, const std::string& map, int64_t rank) {
  const auto width = static_cast<double>(spec.width);
  if (map == "qk") return 2 * width * static_cast<double>((a.d_qk - rank) * a.heads);
  if (map == "ov") return 2 * width * static_cast<double>((a.d_v - rank) * a.heads);
  const auto both = static_cast<double>(a.d_qk + a.d_v), r = static_cast<double>(rank);
  return static_cast<double>(a.kv_heads) * (both * width - r * (width + both));
}

class Planner {
 public:
  Planner(const PlanRequest& request, const ProgressCallback& progress)
      : request_(request), progress_(progress), checkpoint_(request.scan.model) {}

  PlanResult run() {
    read();
    rank_candidates();
    search();
    describe();
    result_.held_out = loss_of(held_out_);
    result_.all = loss_of(all_);
    if (request_.write) write_planned_model(checkpoint_, *source_, edits_, input_.samples, *request_.write);
    return std::move(result_);
  }

 private:
  const ModelSpec& spec() const { return checkpoint_.spec(); }

  void read() {
    const ScanRequest& r = request_.scan;
    if (spec().stored_blocks != spec().depth())
      throw Error("the layers of this model share their weights, so none can be changed alone")
          .in(r.model.string());
    input_ = read_input(r, spec());
    all_ = questions_for(spec(), input_.samples, input_.mask, r.seed);
    if (all_.kind == LossKind::none)
      throw Error("a plan is judged by the loss, and this model has none")
          .in(r.model.string())
          .hint(loss_kind(spec()) == LossKind::masked ? "a tokenizer that names its mask token"
                                                      : "a causal or masked language model with its head");
    const size_t count = input_.samples.size(), last = std::max<size_t>(1, count / 5);
    if (count < 5)
      throw usage_error(fmt::format("a plan needs at least 5 samples, and there are {}", count))
          .hint("a longer text: one sample per line, or --whole");
    search_ = part(0, count - last);
    held_out_ = part(count - last, count);
    source_ = checkpoint_source(checkpoint_, r.dtype, r.device);
    result_.architecture = spec().architecture;
    result_.budget = request_.budget;
    result_.notes = input_.notes;
    result_.parameters = parameter_count(spec());
  }

  // Samples [first, end) with what is asked of them: what is hidden in a sample does not depend on the
  // others.
  Questions part(size_t first, size_t end) const {
    Questions q{all_.kind, {}, {}};
    const auto slice = [&](const auto& from) {
      return std::vector(from.begin() + static_cast<std::ptrdiff_t>(first),
                         from.begin() + static_cast<std::ptrdiff_t>(end));
    };
    q.samples = slice(all_.samples);
    q.answers = {slice(all_.answers.places), slice(all_.answers.ids)};
    return q;
  }

  std::unique_ptr<Evaluator> evaluator(const Questions& questions, bool parts) const {
    return std::make_unique<Evaluator>(Evaluator::Job{.source = *source_,
                                                      .questions = questions,
                                                      .batch_size = request_.scan.batch_size,
                                                      .seed = request_.scan.seed,
                                                      .device = request_.scan.device,
                                                      .parts = parts,
                                                      .group_bytes = 0,
                                                      .progress = progress_});
  }

  static double gained(const Evaluator& e, const Judged& j, double* error = nullptr) {
    std::vector<double> more;
    for (size_t s = 0; s < j.loss.size(); ++s) more.push_back(j.loss[s] - e.full().loss[s]);
    const WeightedMean mean = mean_over_tokens(more, e.asked());
    if (error != nullptr) *error = mean.error;
    return mean.value;
  }

  // What each candidate costs alone, on a few texts of the search.
  void rank_candidates() {
    Questions few{search_.kind, {}, {}};
    const size_t count = std::min(kRankedBy, search_.samples.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t at = i * search_.samples.size() / count;
      few.samples.push_back(search_.samples[at]);
      few.answers.places.push_back(search_.answers.places[at]);
      few.answers.ids.push_back(search_.answers.ids[at]);
    }
    const auto ranker = evaluator(few, true);
    std::vector<Variation> variations;
    for (const Unit& u : units_of(spec(), UnitKind::head)) {
      if (!can_write(checkpoint_, u.layer, "kv")) continue;
      candidates_.push_back(
          {u.layer, u.index, {}, 0, 0, static_cast<double>(parameters_saved(spec(), {{u.layer, u.index}}))});
      variations.push_back({u.layer, u, Replacement::zero, {}});
    }
    for (const char* map : {"qk", "ov", "kv"}) add_ranks(map, variations);
    if (candidates_.empty())
      throw Error("no head and no map of this model can be written back changed")
          .in(request_.scan.model.string());
    const std::vector<Judged> judged = ranker->run(variations);
    for (size_t i = 0; i < candidates_.size(); ++i) candidates_[i].cost = gained(*ranker, judged[i]);
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::max(a.cost, kLeastCost) / a.saves < std::max(b.cost, kLeastCost) / b.saves;
    });
    result_.passes +=
        ranker->passes() * static_cast<double>(count) / static_cast<double>(search_.samples.size());
  }

  void add_ranks(const std::string& map, std::vector<Variation>& variations) {
    int64_t left_out = 0;
    for (int64_t l = 0; l < spec().depth(); ++l) {
      const BlockSpec& block = spec().blocks[static_cast<size_t>(l)];
      if (!can_write(checkpoint_, l, map)) {
        ++left_out;
        continue;
      }
      for (const int64_t part : {8, 4, 2}) {
        const int64_t rank = full_rank(block, map) / part;
        const double saves = saved_by_rank(spec(), block.attention(), map, rank);
        if (rank < 1 || saves <= 0) continue;
        candidates_.push_back({l, -1, map, rank, 0, saves});
        variations.push_back({l, {}, Replacement::zero, {{l, cut_to(block, map, rank)}}});
      }
    }
    if (left_out > 0)
      result_.notes.push_back(
          fmt::format("the {} maps of {} layers were not tried: cut, they have no place in this architecture",
                      map, left_out));
  }

  // The edits with these candidates on top; a cut replaces a weaker one.
  Edits with(const std::vector<const Candidate*>& more) const {
    Edits out = edits_;
    for (const Candidate* c : more) {
      const BlockSpec& full = spec().blocks[static_cast<size_t>(c->layer)];
      BlockEdit& edit = out.try_emplace(c->layer, BlockEdit{full, 0}).first->second;
      AttentionSpec& a = edit.spec.attention();
      const auto lower = [&](int64_t& rank) { rank = rank == 0 ? c->rank : std::min(rank, c->rank); };
      if (c->head >= 0) {
        a.heads_off.push_back(c->head);
        std::sort(a.heads_off.begin(), a.heads_off.end());
      } else if (c->map == "qk") {
        lower(a.truncate_qk);
      } else if (c->map == "ov") {
        lower(a.truncate_ov);
      } else {
        lower(edit.kv_rank);
      }
    }
    return out;
  }

  void search() {
    const auto judge = evaluator(search_, false);
    double error = 0, now = 0;
    size_t next = 0, size = 1;
    while (next < candidates_.size()) {
      std::vector<const Candidate*> step;
      for (size_t i = next; i < std::min(candidates_.size(), next + size); ++i)
        step.push_back(&candidates_[i]);
      const Edits tried = with(step);
      const Judged judged = judge->run({{tried.begin()->first, {}, Replacement::zero, tried}}).front();
      PlanStep s{{}, gained(*judge, judged, &error), false};
      for (const Candidate* c : step) s.what.push_back(c->what());
      s.taken = s.gained <= request_.budget;
      if (s.taken) {
        edits_ = tried;
        now = s.gained;
        result_.search = loss_from(*judge, judged);
        next += step.size();
        size *= 2;
      } else if (step.size() == 1) {
        ++next;  // this one does not fit; another may
      } else {
        size = std::max<size_t>(1, step.size() / 4);
      }
      if (progress_)
        progress_(static_cast<int64_t>(next), static_cast<int64_t>(candidates_.size()),
                  fmt::format("loss +{:.4f} of {}", now, request_.budget));
      // Single candidates that do not fit one after the other: those behind them cost more.
      refused_ = s.taken || step.size() > 1 ? 0 : refused_ + 1;
      result_.steps.push_back(std::move(s));
      if (refused_ == kMostRefusals) break;
    }
    if (edits_.empty()) result_.search = loss_from(*judge, judge->full());
    result_.passes += judge->passes();
  }

  PlannedLoss loss_from(const Evaluator& e, const Judged& j) const {
    PlannedLoss out;
    out.full = mean_over_tokens(e.full().loss, e.asked()).value;
    out.planned = mean_over_tokens(j.loss, e.asked()).value;
    out.gained = gained(e, j, &out.error);
    out.samples = e.samples();
    return out;
  }

  PlannedLoss loss_of(const Questions& questions) const {
    const auto e = evaluator(questions, false);
    if (edits_.empty()) return loss_from(*e, e->full());
    return loss_from(*e, e->run({{edits_.begin()->first, {}, Replacement::zero, edits_}}).front());
  }

  void describe() {
    HeadSet out;
    double fewer = 0, cache = 0, whole = 0;
    result_.rank_pattern = Json::object();
    for (int64_t l = 0; l < spec().depth(); ++l) {
      const BlockSpec& block = spec().blocks[static_cast<size_t>(l)];
      if (block.attention_branch() == nullptr) continue;
      const AttentionSpec& a = block.attention();
      PlannedLayer layer{.layer = l, .heads = a.heads};
      layer.full_qk = full_rank(block, "qk");
      layer.full_ov = full_rank(block, "ov");
      layer.full_kv = full_rank(block, "kv");
      if (const auto edit = edits_.find(l); edit != edits_.end()) {
        const AttentionSpec& e = edit->second.spec.attention();
        layer.heads_out = e.heads_off;
        layer.qk = e.truncate_qk;
        layer.ov = e.truncate_ov;
        layer.kv = edit->second.kv_rank;
        for (const int64_t h : e.heads_off) out.insert({l, h});
      }
      const double left = 1 - static_cast<double>(layer.heads_out.size()) / static_cast<double>(a.heads);
      for (const auto& [map, rank] : {std::pair("qk", layer.qk), {"ov", layer.ov}, {"kv", layer.kv}})
        if (rank > 0) fewer += left * saved_by_rank(spec(), a, map, rank);
      const auto each = static_cast<double>(a.kv_heads * (a.d_qk + a.d_v));
      whole += each;
      HeadSet here;
      for (const int64_t h : layer.heads_out) here.insert({l, h});
      const double gone = cache_saved(spec(), here) * static_cast<double>(spec().depth());
      cache += each * (gone + (1 - gone) * (layer.kv > 0 ? 1 - static_cast<double>(layer.kv) /
                                                                   static_cast<double>(layer.full_kv)
                                                         : 0));
      pattern(l, layer);
      result_.layers.push_back(std::move(layer));
    }
    result_.saved = parameters_saved(spec(), out) + static_cast<int64_t>(fewer);
    result_.cache_saved = whole > 0 ? cache / whole : 0;
  }

  // PEFT names modules; the tensors of a module are its weight and its bias.
  void pattern(int64_t l, const PlannedLayer& layer) {
    const auto add = [&](const char* parameter, int64_t rank) {
      const auto place = checkpoint_.places().find(fmt::format("blocks.{}.attn.{}", l, parameter));
      if (rank == 0 || place == checkpoint_.places().end()) return;
      std::string module = place->second.tensor;
      if (const size_t at = module.rfind(".weight"); at != std::string::npos) module.resize(at);
      Json& entry = result_.rank_pattern[module];  // a fused module serves several maps
      entry = entry.is_null() ? rank : std::max(entry.get<int64_t>(), rank);
    };
    for (const char* p : {"W_Q", "W_K"}) add(p, layer.qk);
    for (const char* p : {"W_V", "W_O"}) add(p, layer.ov);
    for (const char* p : {"W_K", "W_V"}) add(p, layer.kv);
  }

  static constexpr int kMostRefusals = 12;

  const PlanRequest& request_;
  const ProgressCallback& progress_;
  Checkpoint checkpoint_;
  std::unique_ptr<WeightSource> source_;
  ScanInput input_;
  Questions all_, search_, held_out_;
  std::vector<Candidate> candidates_;
  Edits edits_;
  PlanResult result_;
  int refused_ = 0;
};

}  // namespace

PlanResult make_plan(const PlanRequest& request, const ProgressCallback& progress) {
  if (!(request.budget >= 0)) throw usage_error("--budget should not be negative");
  prepare_run(request.scan);
  return Planner(request, progress).run();
}

}  // namespace rankscope
