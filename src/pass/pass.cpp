#include "pass/pass.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/streams.h"
#include "model/truncate.h"
#include "pass/finite.h"
#include "pass/fitting.h"
#include "pass/held_norms.h"
#include "pass/observer.h"
#include "pass/shared_prefixes.h"
#include "pass/states.h"
#include "tensors/device.h"
#include "tensors/norm.h"

namespace rankscope {

FinalState::FinalState() : x(std::make_unique<std::vector<at::Tensor>>()) {}
FinalState::FinalState(FinalState&&) noexcept = default;
FinalState& FinalState::operator=(FinalState&&) noexcept = default;
FinalState::~FinalState() = default;

const FinalState* StreamPlan::state_of(size_t variant) const {
  if (!states) return nullptr;
  for (const FinalState& s : *states)
    if (std::find(s.variants.begin(), s.variants.end(), variant) != s.variants.end()) return &s;
  return nullptr;
}

std::string in_stream(const std::string& stream, const std::string& variant) {
  return stream.empty() ? variant : stream + ": " + variant;
}

void FinalState::cut_into(const std::vector<Batch>& batches) {
  std::vector<int64_t> tokens;
  for (const Batch& b : batches) tokens.push_back(b.tokens());
  *x = at::cat(*x).split_with_sizes(tokens);
}

namespace {

class Pass {
 public:
  Pass(PassPlan& plan, ResultTable& table, std::vector<std::string>& notes, const ProgressCallback& progress)
      : plan_(plan),
        table_(table),
        notes_(notes),
        progress_(progress),
        crossing_(plan.late),
        gone_(plan.variants.size()),
        total_(count_steps(plan)) {
    for (size_t v = 0; v < gone_.size(); ++v)
      gone_[v] = std::any_of(plan.streams.begin(), plan.streams.end(),
                             [&](const StreamPlan& s) { return s.state_of(v) == nullptr; });
  }

  std::vector<FinalState> run() {
    embed_all();
    for (int l = 0; l < depth(); ++l) {
      block(l);
      crossing_.turn();
      drop_gone();
    }
    crossing_.finish();  // nothing that was not finite goes further than this
    drop_gone();
    std::vector<FinalState> out = final();
    crossing_.finish();
    return out;
  }

 private:
  int depth() const { return static_cast<int>(plan_.variants.front().spec.depth()); }
  const Variant& variant(size_t v) const { return plan_.variants[v]; }
  const std::vector<Batch>& batches(const State& s) const {
    return plan_.inputs[variant(s.variants.front()).input];
  }

  std::vector<Name> names(const std::vector<size_t>& variants) const {
    std::vector<Name> out;
    for (const size_t v : variants) out.emplace_back(variant(v).name);
    return out;
  }

  void embed_all() {
    std::vector<size_t> all;
    for (size_t v = 0; v < plan_.variants.size(); ++v)
      if (!gone_[v]) all.push_back(v);
    const auto key = [&](size_t v) {
      std::vector<const FinalState*> read;
      for (const StreamPlan& s : plan_.streams) read.push_back(s.state_of(v));
      return std::tuple(variant(v).source, variant(v).input, variant(v).spec.embedding.use_positions, read);
    };
    for (const std::vector<size_t>& group : group_by(all, key)) {
      const Variant& first = variant(group.front());
      WeightSource& source = *plan_.sources[first.source];
      const Weights weights = source.load("embed");
      State state{group, {}};
      const std::string site = "blocks.0.hook_resid_pre";
      const auto lenses = std::make_shared<SiteLenses>(
          plan_, Site{.name = site, .layer = 0, .depth = 0, .stream = plan_.stream}, first.spec, names(group),
          crossing_);
      for (const Batch& batch : batches(state)) {
        state.x.push_back(embed(batch, first.spec, weights, source));
        watch_finite(state.x.back(), {}, crossing_, [&batch, site](int64_t row) {
          throw Error("the embeddings hold NaN, Inf, or numbers whose squares overflow")
              .in(fmt::format("{}, {}", site, token_of(batch, {}, row)));
        });
        const Packing packing = packing_of(batch);
        lenses->whole({state.x.back(), packing});
      }
      file(lenses, group);
      states_.push_back(std::move(state));
    }
  }

  // The lenses' rows, when their numbers have arrived; none of a variant that is gone by then.
  void file(const std::shared_ptr<SiteLenses>& lenses, const std::vector<size_t>& group) {
    lenses->finish();
    crossing_.keep(lenses);
    crossing_.then([this, lenses = lenses.get(), first = group.front()] {
      if (!gone_[first]) lenses->flush(table_);
    });
  }

  void block(int l) {
    std::vector<State> next;
    for (size_t source = 0; source < plan_.sources.size(); ++source) {
      std::unique_ptr<Weights> weights;  // loaded when the first state needs it
      for (State& state : states_) {
        if (variant(state.variants.front()).source != source) continue;
        if (!weights) weights = std::make_unique<Weights>(load_block(source, l));
        if (state.variants.front() == 0) hold_norms(state, l, *weights);
        const auto key = [&](size_t v) {
          return std::pair(variant(v).spec.blocks[static_cast<size_t>(l)], variant(v).held_norms);
        };
        const auto groups = group_by(state.variants, key);
        SharedPrefixes shared;
        for (size_t g = 0; g < groups.size(); ++g)
          advance(state, groups[g], l, *weights, g + 1 == groups.size(),
                  groups.size() > 1 ? &shared : nullptr, next);
      }
    }
    states_ = std::move(next);
  }

  Weights load_block(size_t source, int l) {
    WeightSource& from = *plan_.sources[source];
    const auto part = [&](int layer) {
      return fmt::format("blocks.{}", from.spec().blocks[static_cast<size_t>(layer)].weights);
    };
    Weights weights = from.load(part(l));
    if (l + 1 < depth()) from.expect(part(l + 1));
    return weights;
  }

  // The first variant leads: the statistics of its norms are there before any other needs them.
  void hold_norms(const State& leading, int l, const Weights& stored) {
    held_.clear();
    if (std::none_of(plan_.variants.begin(), plan_.variants.end(), [](auto& v) { return v.held_norms; }))
      return;
    const BlockPlan plan(variant(0).spec.blocks[static_cast<size_t>(l)], variant(0).spec.width);
    for (size_t b = 0; b < leading.x.size(); ++b)
      held_.push_back(with_held_norms(leading.x[b], plan, stored, batches(leading)[b]));
  }

  // Takes one group of a state through block l; the last group may use up the state's activations.
  void advance(State& state, const std::vector<size_t>& group, int l, const Weights& stored, bool last,
               SharedPrefixes* shared, std::vector<State>& next) {
    const Variant& first = variant(group.front());
    BlockSpec block = first.spec.blocks[static_cast<size_t>(l)];
    const bool cut = is_truncated(block);
    const Weights changed = cut ? truncated(stored, block) : Weights();
    const bool held = first.held_norms;
    const BlockPlan plan(block, first.spec.width);
    const auto observer = std::make_shared<Observer>(
        plan_, l, first.spec, names(group), group.front() == 0 ? plan_.report_sample : nullptr, crossing_,
        [this, group](const std::string& where) { give_up(group, where); });
    crossing_.keep(observer);
    observer->weights(block, cut ? changed : stored);
    const bool alone = shared == nullptr || cut || observer->looks_inside();
    State out{group, {}};
    try {
      for (size_t b = 0; b < state.x.size(); ++b) {
        const std::map<std::string, OtherStream> others = others_of(group.front(), b);
        observer->enter(batches(state)[b], state.x[b], others);
        const BlockContext context{plan,
                                   cut    ? changed
                                   : held ? held_[b]
                                          : stored,
                                   batches(state)[b], *observer, &others};
        out.x.push_back(!alone ? shared->run(state.x[b], context, held, b) : run_block(state.x[b], context));
        if (last) state.x[b].reset();
        observer->output(out.x.back());
      }
      observer->finish();
      crossing_.then([this, watched = observer.get(), v = group.front()] {
        if (!gone_[v]) watched->flush(table_);
      });
      next.push_back(std::move(out));
    } catch (const NotFinite& fault) {
      give_up(group, fault.where);
    } catch (const Error&) {
      crossing_.finish();  // a lens that fails at NaN fails before the flag is read: that is the news
      if (!gone_[group.front()]) throw;
    }
    if (progress_)
      progress_(++done_, total_,
                fmt::format("{}{}block {} of {}, {}", plan_.stream, plan_.stream.empty() ? "" : " ", l + 1,
                            depth(), first.name));
  }

  // What the streams that a variant reads ended in, for one batch.
  std::map<std::string, OtherStream> others_of(size_t v, size_t batch) const {
    std::map<std::string, OtherStream> out;
    for (const StreamPlan& s : plan_.streams)
      out.emplace(s.name, OtherStream{(*s.state_of(v)->x)[batch], s.inputs[variant(v).input][batch]});
    return out;
  }

  // Also called while the next layer runs: what the variants gave there is then not filed either.
  void give_up(const std::vector<size_t>& group, const std::string& where) {
    if (gone_[group.front()]) return;
    if (group.front() == 0)
      throw Error("the activations hold NaN, Inf, or numbers whose squares overflow")
          .in(where)
          .hint("float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise");
    for (const size_t v : group) {
      gone_[v] = true;
      plan_.not_finite[in_stream(plan_.stream, variant(v).name)] = where;
      notes_.push_back(
          fmt::format("{} gave NaN or Inf at {} and was not followed further", variant(v).name, where));
    }
  }

  void drop_gone() {
    std::erase_if(states_, [&](const State& s) { return gone_[s.variants.front()]; });
  }

  std::vector<FinalState> final() {
    std::vector<FinalState> out;
    for (State& state : states_) {
      const auto key = [&](size_t v) { return std::pair(variant(v).spec.final_norm, variant(v).held_norms); };
      for (const std::vector<size_t>& group : group_by(state.variants, key)) {
        const Variant& first = variant(group.front());
        WeightSource& source = *plan_.sources[first.source];
        const bool has_norm = source.spec().final_norm.there();
        const Weights weights = has_norm ? source.load("ln_final") : Weights();
        const auto lenses = std::make_shared<SiteLenses>(
            has_norm ? plan_ : no_lenses(),
            Site{.name = "ln_final.hook_normalized", .depth = depth(), .stream = plan_.stream}, first.spec,
            names(group), crossing_);
        FinalState end;
        end.variants = group;
        for (size_t b = 0; b < state.x.size(); ++b) {
          Weights held = weights.shallow_copy();
          if (first.held_norms && has_norm)
            held.set("held", norm_scale(states_.front().x[b], variant(0).spec.final_norm));
          end.x->push_back(apply_norm(state.x[b], first.spec.final_norm, held, ""));
          const Packing packing = packing_of(batches(state)[b]);
          lenses->whole({end.x->back(), packing});
        }
        file(lenses, group);
        out.push_back(std::move(end));
      }
    }
    return out;
  }

  const PassPlan& no_lenses() const {
    static const PassPlan none{{}, {}, {{}}, {}, {}};
    return none;
  }

  PassPlan& plan_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  const ProgressCallback& progress_;
  Crossing crossing_;
  std::vector<bool> gone_;  // variants that were not finite somewhere
  std::vector<State> states_;
  std::vector<Weights> held_;  // one a batch, of the block at hand
  int64_t done_ = 0, total_;
};

// The plan's number k stream as a network of its own: the same variants, their weights under its name.
void run_stream(PassPlan& plan, size_t k, ResultTable& table, std::vector<std::string>& notes,
                const ProgressCallback& progress) {
  StreamPlan& stream = plan.streams[k];
  std::vector<std::unique_ptr<WeightSource>> sources;
  PassPlan alone;
  alone.lenses = plan.lenses;
  for (WeightSource* source : plan.sources)
    alone.sources.push_back(sources.emplace_back(stream_source(*source, k)).get());
  for (const Variant& v : plan.variants)
    alone.variants.push_back({v.name, stream_alone(v.spec.sources[k], v.spec), v.source, v.input});
  alone.inputs = stream.inputs;
  alone.layers = stream.layers;
  alone.seed = plan.seed;
  alone.sink = plan.sink;
  alone.report_sample = stream.report_sample;
  alone.device = plan.device;
  alone.late = plan.late;
  alone.stream = stream.name;
  stream.states = std::make_shared<std::vector<FinalState>>(run_pass(alone, table, notes, progress));
  plan.not_finite.merge(alone.not_finite);
  // It may have needed smaller batches than the plan has so far.
  for (FinalState& state : *stream.states)
    state.cut_into(stream.inputs[plan.variants[state.variants.front()].input]);
}

}  // namespace

std::vector<FinalState> run_pass(PassPlan& plan, ResultTable& table, std::vector<std::string>& notes,
                                 const ProgressCallback& progress) {
  if (!plan.streams.empty() && plan.stream.empty()) plan.stream = kLastStream;
  for (size_t k = 0; k < plan.streams.size(); ++k)
    if (!plan.streams[k].states) run_stream(plan, k, table, notes, progress);
  for (const Lens* lens : plan.lenses) check_sites(*lens);
  const c10::NoGradGuard no_grad;
  const auto rows = static_cast<std::ptrdiff_t>(table.rows.size());
  const auto samples = static_cast<std::ptrdiff_t>(table.samples.size());
  const size_t said = notes.size();
  const auto lost = plan.not_finite;
  std::vector<std::string> halved;
  for (;;) {
    try {
      std::vector<FinalState> out = Pass(plan, table, notes, progress).run();
      notes.insert(notes.begin() + static_cast<std::ptrdiff_t>(said), halved.begin(), halved.end());
      return out;
    } catch (const c10::OutOfMemoryError&) {
    }
    // What the pass held is free by now; nothing of it stays.
    release_device_memory();
    table.rows.erase(table.rows.begin() + rows, table.rows.end());
    table.samples.erase(table.samples.begin() + samples, table.samples.end());
    notes.resize(said);
    plan.not_finite = lost;
    if (plan.report_sample != nullptr) plan.report_sample->restart();
    halve_batches(plan, halved);
  }
}

}  // namespace rankscope
