#include "train/plain_stack.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "ops/adamw.h"
#include "tensors/torch_compat.h"
#include "train/data.h"
#include "train/layout.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

/// A trial as a stack of one: what the optimizer reads has a row for it.
struct PlainTrial {
  TrialSpec spec;
  std::unique_ptr<TrialData> data;
  Layout layout;
  at::Tensor parameters, m, v;                 // [1, size]
  at::Tensor steps, rates, alive;              // [1], [1, steps], [1]
  std::unique_ptr<ParameterViews> views = {};  // into `parameters`
  int64_t step;
  bool dropped = false;
};

TaskBatch on_device(TaskBatch batch, at::Device device) {
  for (at::Tensor* x : {&batch.tokens, &batch.queries, &batch.target, &batch.ids, &batch.labels})
    if (x->defined()) *x = x->to(device);
  return batch;
}

class PlainStack : public Stack {
 public:
  PlainStack(const std::vector<TrialSpec>& trials, const std::vector<TrainState>& states,
             const StackOptions& options)
      : device_(device_of(options.device)) {
    at::globalContext().setFloat32MatmulPrecision(options.tf32 ? "high" : "highest");
    for (size_t i = 0; i < trials.size(); ++i) add(trials[i], states[i]);
  }

  void advance(int64_t count, std::vector<double>& losses) override {
    for (size_t k = 0; k < trials_.size(); ++k) {
      PlainTrial& t = trials_[k];
      if (t.dropped) continue;
      at::Tensor sum = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
      for (int64_t i = 0; i < count; ++i) sum += advance_once(t);
      losses[k] += sum.item<double>();
    }
  }

  std::vector<Score> evaluate() override {
    const c10::NoGradGuard no_gradients;
    std::vector<Score> out;
    for (const PlainTrial& t : trials_) {
      const Protocol& p = t.spec.protocol;
      std::vector<double> errors;
      for (int64_t first = 0; first < p.test_sequences && !t.dropped; first += p.batch) {
        const int64_t count = std::min(p.batch, p.test_sequences - first);
        const TaskBatch batch = on_device(t.data->test(first, count), device_);
        const at::Tensor e =
            squared_error(forward(t, batch, nullptr), batch.target).to(at::kCPU, at::kDouble).contiguous();
        errors.insert(errors.end(), e.data_ptr<double>(), e.data_ptr<double>() + count);
      }
      errors.resize(static_cast<size_t>(p.test_sequences));
      const Estimate mean = arithmetic_mean(errors);
      out.push_back({mean.value, mean.stderr_});
    }
    return out;
  }

  TrainState state(size_t trial) const override {
    const PlainTrial& t = trials_[trial];
    const auto copy = [](const at::Tensor& x) {
      const at::Tensor here = x.cpu().contiguous();
      return std::vector<float>(here.data_ptr<float>(), here.data_ptr<float>() + here.numel());
    };
    return {copy(t.parameters), copy(t.m), copy(t.v), t.step};
  }

  void drop(size_t trial) override { trials_[trial].dropped = true; }

 private:
  void add(const TrialSpec& spec, const TrainState& state) {
    const auto row = [&](const std::vector<float>& values) {
      return at::tensor(at::ArrayRef<float>(values.data(), values.size()), at::kFloat)
          .unsqueeze(0)
          .to(device_);
    };
    trials_.push_back({.spec = spec,
                       .data = data_of(spec),
                       .layout = Layout(spec.network),
                       .parameters = row(state.parameters),
                       .m = row(state.m),
                       .v = row(state.v),
                       .steps = at::full({1}, state.step, at::kLong).to(device_),
                       .rates = row(learning_rates(spec.protocol)),
                       .alive = at::ones({1}, at::kInt).to(device_),
                       .step = state.step});
    PlainTrial& t = trials_.back();
    t.views = std::make_unique<ParameterViews>(t.layout, t.parameters[0], true, false);
  }

  static at::Tensor forward(const PlainTrial& t, const TaskBatch& batch, Dropout* dropout) {
    return plain_forward(t.spec.network, *t.views, batch, dropout);
  }

  /// The loss, still on the device.
  at::Tensor advance_once(PlainTrial& t) {
    const Protocol& p = t.spec.protocol;
    t.data->begin_step(t.step);
    const TaskBatch batch = on_device(t.data->train(t.step, 0, t.data->batch(t.step)), device_);
    const auto dropout = seeded_dropout(p.dropout, dropout_seed(t.spec, t.step, 0));
    const at::Tensor loss = loss_of(forward(t, batch, dropout.get()), batch, t.data->weight(t.step));
    std::vector<at::Tensor> gradients = gradients_of(loss, t.views->leaves());
    shrink(gradients, t);
    for (at::Tensor& g : gradients) g = g.unsqueeze(0);
    apply_adamw(p.adamw, t.steps, t.rates, t.alive, gradients, t.views->offsets(), t.parameters, t.m, t.v);
    t.steps.add_(1);
    ++t.step;
    return loss.detach().to(at::kDouble);
  }

  // Adds the penalty to the gradient and cuts its norm, where the protocol says so.
  static void shrink(std::vector<at::Tensor>& gradients, const PlainTrial& t) {
    const Protocol& p = t.spec.protocol;
    const c10::NoGradGuard no_gradients;
    for (size_t i = 0; p.l2 > 0 && i < gradients.size(); ++i)
      gradients[i] = gradients[i] + p.l2 * t.views->leaves()[i];
    if (p.clip == 0) return;
    at::Tensor square = at::zeros({}, gradients.front().options().dtype(at::kDouble));
    for (const at::Tensor& g : gradients) square += g.to(at::kDouble).square().sum();
    const at::Tensor share = (p.clip / square.sqrt()).clamp_max(1.0).to(at::kFloat);
    for (at::Tensor& g : gradients) g = g * share;
  }

  at::Device device_;
  std::vector<PlainTrial> trials_;
};

}  // namespace

std::unique_ptr<Stack> make_plain_stack(const std::vector<TrialSpec>& trials,
                                        const std::vector<TrainState>& states, const StackOptions& options) {
  return std::make_unique<PlainStack>(trials, states, options);
}

}  // namespace rankscope
