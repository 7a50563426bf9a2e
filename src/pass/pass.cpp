#include "pass/pass.h"

#include <c10/core/GradMode.h>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/block.h"
#include "model/ends.h"
#include "model/truncate.h"
#include "pass/recorder.h"
#include "tensors/norm.h"
#include "tensors/torch_compat.h"

namespace rankscope {

FinalState::FinalState() : x(std::make_unique<std::vector<at::Tensor>>()) {}
FinalState::FinalState(FinalState&&) noexcept = default;
FinalState& FinalState::operator=(FinalState&&) noexcept = default;
FinalState::~FinalState() = default;

namespace {

// A number that is no number; the variant it belongs to ends here.
struct NotFinite {
  std::string where;
};

void require_finite(const at::Tensor& x, const std::string& where) {
  if (!all_finite(x)) throw NotFinite{where};
}

Packing packing_of(const Batch& batch) { return {batch.offsets, batch.samples, batch.content}; }

// Every lens that reads one site.
class SiteLenses {
 public:
  SiteLenses(const PassPlan& plan, const Site& site, const ModelSpec& spec,
             const std::vector<Name>& variants) {
    if (site.layer >= 0 && !plan.layers[static_cast<size_t>(site.layer)]) return;
    int64_t samples = 0;
    for (const Batch& b : plan.inputs.front()) samples += b.count();
    for (const Lens* lens : plan.lenses)
      if (reads(*lens, site.name))
        lenses_.emplace_back(*lens, LensContext{spec, site.layer, plan.seed, samples, plan.sink}, site,
                             variants);
  }

  bool empty() const { return lenses_.empty(); }
  void whole(const WholeView& view) {
    for (SiteLens& lens : lenses_) lens.whole(view);
  }
  void tile(const TileView& view) {
    for (SiteLens& lens : lenses_) lens.tile(view);
  }
  void factored(const FactoredView& view) {
    for (SiteLens& lens : lenses_) lens.factored(view);
  }
  void weights(const WeightsView& view) {
    for (SiteLens& lens : lenses_) lens.weights(view);
  }
  void finish(ResultTable& table, ReportSample* shown = nullptr) {
    for (SiteLens& lens : lenses_) lens.finish(table, shown != nullptr ? &shown->arrays() : nullptr);
  }

 private:
  std::vector<SiteLens> lenses_;
};

// Hands the tensors of one block to the lenses that asked.
class Observer : public BlockObserver {
 public:
  Observer(const PassPlan& plan, int layer, const ModelSpec& spec, const std::vector<Name>& variants,
           ReportSample* shown)
      : layer_(layer), shown_(shown), prefix_(fmt::format("blocks.{}.", layer)) {
    if (const BranchSpec* b = spec.blocks[static_cast<size_t>(layer)].attention_branch())
      attention_ = *b->attention();
    for (const SiteInfo& site : sites()) {
      if (!site.in_block || (layer == 0 && site.name == "hook_resid_pre")) continue;  // seen after embedding
      const int depth = site.name == "hook_resid_post" ? layer + 1 : layer;
      SiteLenses lenses(plan, {prefix_ + std::string(site.name), layer, depth}, spec, variants);
      if (!lenses.empty()) sites_.emplace_back(site.name, std::move(lenses));
    }
  }

  void enter(const Batch& batch) { packing_ = packing_of(batch); }

  bool wants(std::string_view site) const override {
    return has(site) || ((site == "hook_resid_pre" || site == "attn.hook_z") && has("attn.hook_result"));
  }
  /// Whether a lens reads what only run_block shows.
  bool looks_inside() const {
    return std::any_of(sites_.begin(), sites_.end(), [](const auto& site) {
      return site.first != "ln1.hook_normalized" && site.first != "attn" && site.first != "hook_resid_post";
    });
  }
  void see(std::string_view site, const at::Tensor& x, const TilePlace& place) override {
    if (site == "hook_resid_pre") before_ = x;
    if (site == "attn.hook_z")
      if (SiteLenses* result = find("attn.hook_result"))
        result->factored({x, averaged(weights_->get("attn.W_O")), before_, packing_});
    SiteLenses* const lenses = find(site);
    if (lenses == nullptr) return;
    if (place.queries == 0) return lenses->whole({x, packing_});
    const TileView view{x, place, attention_.causal, attention_.window, packing_};
    const bool pattern = site == "attn.hook_pattern";
    if (pattern) require_finite(x, prefix_ + "attn.hook_pattern");
    lenses->tile(view);
    if (pattern && shown_ != nullptr) shown_->pattern(layer_, view);
  }
  void weights(const BlockSpec& block, const Weights& weights) {
    weights_ = &weights;
    if (SiteLenses* lenses = find("attn")) lenses->weights({block, weights});
  }
  void output(const at::Tensor& x) {
    before_.reset();
    require_finite(x, prefix_ + "hook_resid_post");
    see("hook_resid_post", x, {});
  }
  void finish(ResultTable& table) {
    for (auto& [name, lenses] : sites_) lenses.finish(table, shown_);
  }

 private:
  bool has(std::string_view site) const {
    return std::any_of(sites_.begin(), sites_.end(), [&](auto& s) { return s.first == site; });
  }
  // The heads' modules are averaged.
  at::Tensor averaged(const at::Tensor& W_O) const {
    return attention_.modules == 1 ? W_O : W_O / static_cast<double>(attention_.modules);
  }
  SiteLenses* find(std::string_view site) {
    for (auto& [name, lenses] : sites_)
      if (name == site) return &lenses;
    return nullptr;
  }

  AttentionSpec attention_;
  int layer_;
  ReportSample* shown_;
  std::string prefix_;
  std::vector<std::pair<std::string_view, SiteLenses>> sites_;  // those that somebody reads
  const Weights* weights_ = nullptr;
  at::Tensor before_;  // the residual stream before the block
  Packing packing_;
};

// Activations shared by the variants that agree so far.
struct State {
  std::vector<size_t> variants;
  std::vector<at::Tensor> x;  // one per batch
};

// Splits variants into groups that agree in `key`, in order of first appearance.
template <class Key>
std::vector<std::vector<size_t>> group_by(const std::vector<size_t>& variants, Key key) {
  std::vector<std::vector<size_t>> groups;
  for (const size_t v : variants) {
    const auto it =
        std::find_if(groups.begin(), groups.end(), [&](auto& g) { return key(g.front()) == key(v); });
    if (it == groups.end())
      groups.push_back({v});
    else
      it->push_back(v);
  }
  return groups;
}

// The block's weights with the scales of its norms at x beside them: apply_norm then takes these.
Weights with_held_norms(const at::Tensor& x, const BlockPlan& plan, const Weights& weights,
                        const Batch& batch) {
  Weights out = weights.shallow_copy();
  BlockObserver nobody;
  const BlockContext context{plan, weights, batch, nobody};
  BlockState state = block_start(x);
  for (const Step& step : plan.steps) {
    Step open = step;  // the same without its norm: what that norm is given
    open.norm = {};
    BlockState given = state;
    if (step.norm.acts()) {
      run_step(open, context, given, true);
      const bool joins = step.kind == Step::Kind::join;
      out.set(step.norm_name + ".held", norm_scale(joins ? given.stream : given.value, step.norm));
    }
    run_step(step, context, state, true);
  }
  return out;
}

// What the variants of one state have in common inside a block, computed once a batch: they share every
// prefix of steps in which they agree. A factorial of skips, MLPs and norms asks for the same attention of
// the first block again and again.
class SharedPrefixes {
 public:
  explicit SharedPrefixes(bool in_use) : in_use_(in_use) {}

  /// The block's output, from whatever is already known of it.
  at::Tensor run(const at::Tensor& x, const BlockContext& context, const Observer& observer, bool held,
                 size_t batch) {
    if (!in_use_ || observer.looks_inside()) return run_block(x, context);
    const std::vector<Step>& steps = context.plan.steps;
    BlockState state = block_start(x);
    for (size_t n = 1; n <= steps.size(); ++n) {
      const Step& step = steps[n - 1];
      const bool last = n == steps.size();  // the end of a block is no prefix of another variant's
      if (const BlockState* known = last ? nullptr : find(steps, n, held, batch)) {
        state = *known;
        if (step.kind == Step::Kind::read && step.branch == 0 && step.norm.there())
          context.observer.see(step.norm_name + ".hook_normalized", state.value, {});
        continue;
      }
      run_step(step, context, state, true);
      if (!last)
        known_.push_back(
            {{steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n)}, held, batch, state});
    }
    return state.stream;
  }

 private:
  struct Entry {
    std::vector<Step> prefix;
    bool held;
    size_t batch;
    BlockState state;
  };
  // Norms that are held change nothing before the first of them.
  static bool norms_act(const std::vector<Step>& steps, size_t n) {
    return std::any_of(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n),
                       [](const Step& s) { return s.norm.acts(); });
  }
  const BlockState* find(const std::vector<Step>& steps, size_t n, bool held, size_t batch) const {
    for (const Entry& e : known_)
      if (e.batch == batch && e.prefix.size() == n && (e.held == held || !norms_act(steps, n)) &&
          std::equal(e.prefix.begin(), e.prefix.end(), steps.begin()))
        return &e.state;
    return nullptr;
  }

  bool in_use_;
  std::vector<Entry> known_;
};

class Pass {
 public:
  Pass(const PassPlan& plan, ResultTable& table, std::vector<std::string>& notes,
       const ProgressCallback& progress)
      : plan_(plan), table_(table), notes_(notes), progress_(progress), total_(count_steps(plan)) {}

  std::vector<FinalState> run() {
    embed_all();
    for (int l = 0; l < depth(); ++l) block(l);
    return final();
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
    std::vector<size_t> all(plan_.variants.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const auto key = [&](size_t v) {
      return std::tuple(variant(v).source, variant(v).input, variant(v).spec.embedding.use_positions);
    };
    for (const std::vector<size_t>& group : group_by(all, key)) {
      const Variant& first = variant(group.front());
      WeightSource& source = *plan_.sources[first.source];
      const Weights weights = source.load("embed");
      State state{group, {}};
      SiteLenses lenses(plan_, {"blocks.0.hook_resid_pre", 0, 0}, first.spec, names(group));
      for (const Batch& batch : batches(state)) {
        state.x.push_back(embed(batch, first.spec, weights, source));
        if (!all_finite(state.x.back()))
          throw Error("the embeddings hold NaN or Inf").in("blocks.0.hook_resid_pre");
        const Packing packing = packing_of(batch);
        lenses.whole({state.x.back(), packing});
      }
      lenses.finish(table_);
      states_.push_back(std::move(state));
    }
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
        SharedPrefixes shared(groups.size() > 1);
        for (size_t g = 0; g < groups.size(); ++g)
          advance(state, groups[g], l, *weights, g + 1 == groups.size(), shared, next);
      }
    }
    states_ = std::move(next);
  }

  Weights load_block(size_t source, int l) {
    const ModelSpec& spec = plan_.sources[source]->spec();
    return plan_.sources[source]->load(fmt::format("blocks.{}", spec.blocks[static_cast<size_t>(l)].weights));
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
               SharedPrefixes& shared, std::vector<State>& next) {
    const Variant& first = variant(group.front());
    BlockSpec block = first.spec.blocks[static_cast<size_t>(l)];
    const bool cut = is_truncated(block);
    const Weights changed = cut ? truncated(stored, block) : Weights();
    const bool held = first.held_norms;
    const BlockPlan plan(block, first.spec.width);
    Observer observer(plan_, l, first.spec, names(group), group.front() == 0 ? plan_.shown : nullptr);
    observer.weights(block, cut ? changed : stored);
    State out{group, {}};
    try {
      for (size_t b = 0; b < state.x.size(); ++b) {
        observer.enter(batches(state)[b]);
        const BlockContext context{plan,
                                   cut    ? changed
                                   : held ? held_[b]
                                          : stored,
                                   batches(state)[b], observer};
        out.x.push_back(cut ? run_block(state.x[b], context)
                            : shared.run(state.x[b], context, observer, held, b));
        if (last) state.x[b].reset();
        observer.output(out.x.back());
      }
      observer.finish(table_);
      next.push_back(std::move(out));
    } catch (const NotFinite& fault) {
      give_up(group, fault.where);
    }
    if (progress_) progress_(++done_, total_, fmt::format("block {} of {}, {}", l + 1, depth(), first.name));
  }

  void give_up(const std::vector<size_t>& group, const std::string& where) {
    if (group.front() == 0)
      throw Error("the activations hold NaN or Inf")
          .in(where)
          .hint("float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise");
    for (const size_t v : group)
      notes_.push_back(
          fmt::format("{} gave NaN or Inf at {} and was not followed further", variant(v).name, where));
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
        SiteLenses lenses(has_norm ? plan_ : no_lenses(), {"ln_final.hook_normalized", -1, depth()},
                          first.spec, names(group));
        FinalState end;
        end.variants = group;
        for (size_t b = 0; b < state.x.size(); ++b) {
          Weights held = weights.shallow_copy();
          if (first.held_norms && has_norm)
            held.set("held", norm_scale(states_.front().x[b], variant(0).spec.final_norm));
          end.x->push_back(apply_norm(state.x[b], first.spec.final_norm, held, ""));
          const Packing packing = packing_of(batches(state)[b]);
          lenses.whole({end.x->back(), packing});
        }
        lenses.finish(table_);
        out.push_back(std::move(end));
      }
    }
    return out;
  }

  const PassPlan& no_lenses() const {
    static const PassPlan none{{}, {}, {{}}, {}, {}};
    return none;
  }

  const PassPlan& plan_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  const ProgressCallback& progress_;
  std::vector<State> states_;
  std::vector<Weights> held_;  // one a batch, of the block at hand
  int64_t done_ = 0, total_;
};

}  // namespace

int64_t count_steps(const PassPlan& plan) {
  const auto& variants = plan.variants;
  const auto same_prefix = [&](size_t a, size_t b, size_t depth) {
    const Variant &x = variants[a], &y = variants[b];
    return x.source == y.source && x.input == y.input &&
           x.spec.embedding.use_positions == y.spec.embedding.use_positions && x.held_norms == y.held_norms &&
           std::equal(x.spec.blocks.begin(), x.spec.blocks.begin() + static_cast<std::ptrdiff_t>(depth),
                      y.spec.blocks.begin());
  };
  int64_t steps = 0;
  for (size_t l = 1; l <= variants.front().spec.blocks.size(); ++l)
    for (size_t v = 0; v < variants.size(); ++v) {
      bool seen = false;
      for (size_t u = 0; u < v && !seen; ++u) seen = same_prefix(u, v, l);
      steps += !seen;
    }
  return steps;
}

std::vector<FinalState> run_pass(const PassPlan& plan, ResultTable& table, std::vector<std::string>& notes,
                                 const ProgressCallback& progress) {
  for (const Lens* lens : plan.lenses) check_sites(*lens);
  const c10::NoGradGuard no_grad;
  return Pass(plan, table, notes, progress).run();
}

}  // namespace rankscope
