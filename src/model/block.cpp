#include "model/block.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/attend.h"
#include "model/convolve.h"
#include "model/delta_gates.h"
#include "model/experts.h"
#include "tensors/norm.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

// Parts in which tokens do not meet keep the hidden layers of so many at once: what a cache holds, or what
// fills a GPU.
int64_t tokens_at_once(const at::Tensor& x) { return x.is_cuda() ? 16384 : 512; }

// A part's program on the tokens it reads.
class Run {
 public:
  Run(const Step& step, const BlockContext& c)
      : step_(step), c_(c), program_(c.plan.programs[static_cast<size_t>(step.branch)]) {
    uses_.resize(program_.operations.size() + kFirstMade, 0);
    for (const Operation& o : program_.operations)
      for (const Value v : {o.from, o.second, o.third, o.fourth})
        if (v >= 0) ++uses_[static_cast<size_t>(v)];
  }

  at::Tensor run(at::Tensor x) {
    // Attention and convolutions need all tokens, and experts are read once for all that take them.
    const bool in_parts = !c_.differentiated &&
                          std::none_of(program_.operations.begin(), program_.operations.end(), [](auto& o) {
                            return o.kind == Operation::Kind::attend || o.kind == Operation::Kind::experts ||
                                   o.kind == Operation::Kind::convolve;
                          });
    if (!in_parts)
      return once(std::move(x), [&](const Operation& o, const at::Tensor& made) {
        if (!step_.reads.empty() && o.from == kOther) return;  // keys and values of another stream
        c_.observer.see(o.site, o.heads > 0 ? made.view({made.size(0), o.heads, -1}) : made);
      });
    at::Tensor out = at::empty({x.size(0), program_.width}, x.options());
    std::map<std::string, at::Tensor> gathered;  // what somebody wants of it, put together again
    for (int64_t first = 0; first < x.size(0); first += tokens_at_once(x)) {
      const int64_t count = std::min(tokens_at_once(x), x.size(0) - first);
      const at::Tensor written =
          once(x.narrow(0, first, count), [&](const Operation& o, const at::Tensor& made) {
            if (!c_.observer.wants(o.site)) return;
            at::Tensor& whole = gathered[o.site];
            if (!whole.defined()) whole = at::empty({x.size(0), made.size(1)}, made.options());
            whole.narrow(0, first, count).copy_(made);
          });
      out.narrow(0, first, count).copy_(written);
    }
    for (const auto& [site, whole] : gathered) c_.observer.see(site, whole);
    return out;
  }

 private:
  template <class Show>
  at::Tensor once(at::Tensor x, Show show) const {
    std::vector<at::Tensor> values;
    values.push_back(std::move(x));
    values.push_back(step_.reads.empty() ? values.front() : other().x);
    std::vector<int> left = uses_;
    for (const Operation& o : program_.operations) {
      values.push_back(made(o, values));
      if (!o.site.empty()) show(o, values.back());
      for (const Value v : {o.from, o.second, o.third, o.fourth})  // nobody reads it again
        if (v >= 0 && --left[static_cast<size_t>(v)] == 0) values[static_cast<size_t>(v)].reset();
    }
    return values.back();
  }

  const OtherStream& other() const {
    if (c_.others == nullptr || c_.others->count(step_.reads) == 0)
      throw Error(
          fmt::format("the branch {} reads the stream {}, which is not there", step_.name, step_.reads));
    return c_.others->at(step_.reads);
  }

  at::Tensor made(const Operation& o, const std::vector<at::Tensor>& values) const {
    const auto value = [&](Value v) -> const at::Tensor& { return values[static_cast<size_t>(v)]; };
    // A value nobody else reads may be written into.
    const bool own = o.from >= kFirstMade && uses_[static_cast<size_t>(o.from)] == 1 && !c_.differentiated;
    switch (o.kind) {
      case Operation::Kind::linear: {
        const at::Tensor& W = c_.weights.get(o.W);
        return at::linear(value(o.from), o.scale == 1.0 ? W : W * o.scale,
                          o.b.empty() ? at::Tensor() : c_.weights.get_or_none(o.b));
      }
      case Operation::Kind::activation:
        return apply_activation(value(o.from), o.activation, own);
      case Operation::Kind::multiply: {
        at::Tensor carried = value(o.from);
        return own ? carried.mul_(value(o.second)) : carried * value(o.second);
      }
      case Operation::Kind::sum: {
        at::Tensor carried = value(o.from);
        return own ? carried.add_(value(o.second)) : carried + value(o.second);
      }
      case Operation::Kind::repeat:
        return repeat_chunks(value(o.from), o.groups, o.chunk);
      case Operation::Kind::convolve:
        return convolve(value(o.from), c_.weights.get(o.W), c_.batch);
      case Operation::Kind::gates:
        return delta_gates(value(o.from), value(o.second), c_.weights.get(o.W + "_rate"),
                           c_.weights.get(o.W + "_bias"));
      case Operation::Kind::norm:
        return apply_grouped_norm(value(o.from), o.norm, o.groups, c_.weights, o.W);
      case Operation::Kind::share:
        return shares_of(value(o.from), o.sharing, c_.weights);
      case Operation::Kind::experts: {
        const std::string site = step_.name + ".hook_expert_out";
        std::function<void(int64_t, const at::Tensor&)> show;
        if (c_.observer.wants(site))
          show = [&](int64_t e, const at::Tensor& written) { c_.observer.see(site, written, {e}); };
        return run_experts(value(o.from), value(o.second), o.third >= 0 ? value(o.third) : at::Tensor(), o,
                           c_.weights, c_.differentiated, show);
      }
      case Operation::Kind::beside:
        return set_beside(value(o.from), value(o.second), o.groups);
      case Operation::Kind::attend: {
        const Batch& keys = step_.reads.empty() ? c_.batch : other().batch;
        const Attending in{std::get<AttentionSpec>(step_.part.words),
                           c_.weights,
                           step_.name,
                           value(o.from),
                           value(o.second),
                           c_.batch,
                           keys,
                           o.fourth >= 0 ? value(o.fourth) : at::Tensor()};
        return attend(in, value(o.third), c_);
      }
    }
    throw Error("an operation that nobody runs");
  }

  const Step& step_;
  const BlockContext& c_;
  const Program& program_;
  std::vector<int> uses_;  // by value
};

at::Tensor written(const Step& step, const BlockContext& c, const at::Tensor& value, bool keep) {
  at::Tensor out = apply_norm(value, step.norm, c.weights, step.norm_name);
  if (step.scale != 1.0) out = keep ? out * step.scale : out.mul_(step.scale);
  if (step.channel_scale) out = out * c.weights.get(step.name + ".layer_scale");
  return c.dropout != nullptr ? (*c.dropout)(out) : out;
}

// Whether a branch before it read what the block was given through the same norm.
bool shown_before(const Step& step, const BlockPlan& plan) {
  return step.from_start && std::ranges::any_of(plan.steps, [&](const Step& other) {
           return other.kind == Step::Kind::read && other.branch < step.branch &&
                  (other.branch == 0 || other.from_start) && other.norm.there() &&
                  other.norm_name == step.norm_name;
         });
}

}  // namespace

BlockPlan::BlockPlan(const BlockSpec& block, int64_t width) : steps(steps_of(block)) {
  for (const BranchSpec& branch : block.branches) programs.push_back(program_of(branch, width));
}

BlockState block_start(const at::Tensor& x) { return {x, x, {}, {}}; }

void run_step(const Step& step, const BlockContext& c, BlockState& s, bool keep) {
  keep = keep || c.differentiated;
  switch (step.kind) {
    case Step::Kind::read:
      s.value = apply_norm(step.from_start ? s.start : s.stream, step.norm, c.weights, step.norm_name);
      if (step.replaces) s.kept = s.value;
      break;
    case Step::Kind::run:
      s.value = Run(step, c).run(std::move(s.value));
      break;
    case Step::Kind::write:
      s.value = written(step, c, s.value, keep);
      break;
    case Step::Kind::join:
      if (step.skip) {
        const at::Tensor& skipped = s.kept.defined() ? s.kept : s.stream;
        s.value = keep ? s.value + skipped : s.value.add_(skipped);
      }
      s.kept.reset();
      s.stream = apply_norm(s.value, step.norm, c.weights, step.norm_name);
      s.value.reset();
      break;
  }
  show_step(step, c, s);
}

void show_step(const Step& step, const BlockContext& c, const BlockState& s) {
  BlockObserver& observer = c.observer;
  if (step.kind == Step::Kind::read) {
    if (step.branch == 0) observer.see("hook_resid_pre", s.stream);
    if (step.branch > 0 && !step.from_start)
      observer.see(step.name == "cross" ? "hook_resid_cross" : "hook_resid_mid", s.stream);
    if (step.norm.there() && !shown_before(step, c.plan))
      observer.see(step.norm_name + ".hook_normalized", s.value);
  }
  if (step.kind == Step::Kind::write) observer.see("hook_" + step.name + "_out", s.value);
}

at::Tensor run_block(const at::Tensor& x, const BlockContext& context) {
  BlockState state = block_start(x);
  for (const Step& step : context.plan.steps) run_step(step, context, state);
  return state.stream;
}

at::Tensor run_block(const at::Tensor& x, const BlockSpec& block, const Weights& weights, const Batch& batch,
                     BlockObserver& observer) {
  const BlockPlan plan(block, x.size(-1));
  return run_block(x, {plan, weights, batch, observer});
}

}  // namespace rankscope
