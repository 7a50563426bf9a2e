#include "operator/frozen.h"

#include <c10/core/GradMode.h>

#include <map>

#include "base/error.h"
#include "model/embed_and_unembed.h"
#include "model/truncate.h"
#include "tensors/torch_compat.h"

namespace rankscope {

struct FrozenNetwork::Impl {
  at::Tensor input, output, head_output;
  at::Tensor bias, head_bias;  // filled in when first asked for
  AffineChain trunk, head;
};

namespace {

// Freezes part after part at the state that reaches it, and advances the state by the frozen parts
// themselves.
class Freezer {
 public:
  Freezer(const ModelSpec& spec, WeightSource& source, const Batch& batch)
      : spec_(spec), source_(source), batch_(batch) {}

  at::Tensor start() { return x_ = embed(batch_, spec_, source_.load("embed"), source_); }
  const at::Tensor& state() const { return x_; }

  AffineChain trunk() {
    for (int l = 0; l < static_cast<int>(spec_.depth()); ++l) block(l);
    if (spec_.final_norm.acts()) {
      const Weights w = source_.load("ln_final");
      norm_step(-1, spec_.final_norm, w, "");
    }
    return std::move(chain_);
  }

  AffineChain head() {
    chain_ = {};
    const OutputSpec& o = spec_.output;
    if (o.kind == HeadKind::none) return {};
    if (o.kind == HeadKind::transformed) {
      const Weights w = source_.load("unembed");
      at::Tensor written;
      auto dense = freeze_dense(x_, w.get("W_T"), w.get_or_none("b_T"), o.activation, written);
      single_step(PartKind::dense, -1, std::move(dense), written);
      if (o.norm.acts()) norm_step(-1, o.norm, w, "ln");
    }
    if (o.scale != 1.0) single_step(PartKind::dense, -1, freeze_scale(o.scale));
    return std::move(chain_);
  }

 private:
  const Weights& weights_of(BlockSpec& block) {
    auto it = loaded_.find(block.weights);
    if (it == loaded_.end())
      it = loaded_.emplace(block.weights, source_.load(fmt::format("blocks.{}", block.weights))).first;
    if (!is_truncated(block)) return it->second;
    return cut_ = truncated(it->second, block);
  }

  void block(int l) {
    BlockSpec block = spec_.blocks[static_cast<size_t>(l)];
    const Weights& w = weights_of(block);
    if (l + 1 < spec_.depth() && loaded_.count(spec_.blocks[static_cast<size_t>(l) + 1].weights) == 0)
      source_.expect(fmt::format("blocks.{}", spec_.blocks[static_cast<size_t>(l) + 1].weights));
    const BlockPlan plan(block, spec_.width);
    for (const Step& step : plan.steps) follow(step, plan, w, l);
    end_of_step();
    if (!all_finite(x_))
      throw Error("the activations hold NaN or Inf")
          .in(fmt::format("blocks.{}.hook_resid_post", l))
          .hint("float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise");
    // Blocks that share weights keep them; the others' go with the parts that hold their tensors.
    if (spec_.stored_blocks == spec_.depth()) loaded_.clear();
  }

  void follow(const Step& step, const BlockPlan& plan, const Weights& w, int l) {
    const auto norm = [&] {
      if (step.norm.acts()) add(PartKind::norm, l, freeze_norm(branch_, step.norm, w, step.norm_name));
    };
    switch (step.kind) {
      case Step::Kind::read:
        if (!step.from_start) end_of_step();
        if (step.replaces && step.norm.acts()) {
          norm_step(l, step.norm, w, step.norm_name);
          return begin();
        }
        begin();
        return norm();
      case Step::Kind::run: {
        at::Tensor written;
        auto part = freeze_program(branch_, step, plan.programs[static_cast<size_t>(step.branch)], w, batch_,
                                   written);
        const bool attention = part->heads() > 0;
        return add(attention ? PartKind::attention : PartKind::mlp, l, std::move(part), written);
      }
      case Step::Kind::write:
        norm();
        if (step.scale != 1.0) add(PartKind::dense, l, freeze_scale(step.scale));
        if (step.channel_scale) add(PartKind::dense, l, freeze_scale(w.get(step.name + ".layer_scale")));
        return;
      case Step::Kind::join:
        end_branch(step.skip);
        if (step.norm.acts()) norm_step(l, step.norm, w, step.norm_name);
        return;
    }
  }

  void norm_step(int l, const NormSpec& norm, const Weights& w, std::string_view name) {
    end_of_step();
    single_step(PartKind::norm, l, freeze_norm(x_, norm, w, name));
  }
  // A step of one branch that takes the place of the stream.
  void single_step(PartKind kind, int l, std::shared_ptr<const LinearPart> part,
                   const at::Tensor& written = {}) {
    begin();
    add(kind, l, std::move(part), written);
    end_branch(false);
    end_of_step();
  }

  void begin() { branch_ = x_; }
  void add(PartKind kind, int l, std::shared_ptr<const LinearPart> part, const at::Tensor& written = {}) {
    if (written.defined()) {
      branch_ = written;
    } else {
      branch_ = part->apply(branch_.unsqueeze(0)).squeeze(0);
      if (const at::Tensor bias = part->bias(); bias.defined()) branch_ = branch_.add_(bias);
    }
    elements_.push_back({kind, l, std::move(part)});
  }
  // The first branch of a step decides whether the step has a skip.
  void end_branch(bool skip) {
    if (step_.branches.empty()) {
      step_.skip = skip;
      sum_ = skip ? branch_.add_(x_) : branch_;
    } else {
      sum_ = branch_.add_(sum_);
    }
    step_.branches.push_back(std::move(elements_));
    elements_.clear();
  }
  void end_of_step() {
    if (step_.branches.empty()) return;
    x_ = sum_;
    chain_.push(std::move(step_));
    step_ = {};
  }

  const ModelSpec& spec_;
  WeightSource& source_;
  const Batch& batch_;
  std::map<int64_t, Weights> loaded_;
  Weights cut_;
  at::Tensor x_, branch_, sum_;
  Branch elements_;
  FrozenStep step_{};
  AffineChain chain_;
};

}  // namespace

FrozenNetwork::FrozenNetwork(const ModelSpec& spec, WeightSource& source, const Batch& batch)
    : impl_(std::make_unique<Impl>()) {
  const c10::NoGradGuard no_grad;
  Freezer freezer(spec, source, batch);
  impl_->input = freezer.start();
  impl_->trunk = freezer.trunk();
  impl_->output = freezer.state();
  impl_->head = freezer.head();
  impl_->head_output = freezer.state();
}

FrozenNetwork::FrozenNetwork(FrozenNetwork&&) noexcept = default;
FrozenNetwork::~FrozenNetwork() = default;

const at::Tensor& FrozenNetwork::input() const { return impl_->input; }
const at::Tensor& FrozenNetwork::output() const { return impl_->output; }
const at::Tensor& FrozenNetwork::bias() const {
  const c10::NoGradGuard no_grad;
  if (!impl_->bias.defined()) impl_->bias = impl_->trunk.affine(at::zeros_like(impl_->input));
  return impl_->bias;
}
const AffineChain& FrozenNetwork::trunk() const { return impl_->trunk; }
const AffineChain& FrozenNetwork::head() const { return impl_->head; }
const at::Tensor& FrozenNetwork::head_output() const { return impl_->head_output; }
const at::Tensor& FrozenNetwork::head_bias() const {
  const c10::NoGradGuard no_grad;
  if (!impl_->head_bias.defined()) impl_->head_bias = impl_->head.affine(bias());
  return impl_->head_bias;
}

}  // namespace rankscope
