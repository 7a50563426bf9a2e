#include "bench/training_case.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <functional>
#include <limits>

#include "bench/graph.h"
#include "bench/plain_network.h"
#include "ops/normals.h"
#include "parts/parameters.h"
#include "tensors/torch_compat.h"
#include "train/constructions.h"
#include "train/data.h"
#include "train/networks.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr int64_t kSteps = 100'000;  // more than any measurement takes

// The random numbers of our own steps, so that both sides train on the same sequences.
class DeviceDraw : public Draw {
 public:
  DeviceDraw(const Tensor& seeds, const Tensor& steps, int64_t sequences)
      : seeds_(seeds), steps_(steps), sequences_(sequences) {}
  Tensor normals(uint32_t stream, int64_t count) const override {
    return draw_normals(seeds_, stream, steps_, sequences_ * count).view({seeds_.size(0), sequences_, count});
  }

 private:
  Tensor seeds_, steps_;
  int64_t sequences_;
};

// Data, parameters and optimizer of LibTorch's side.
class PlainTraining {
 public:
  PlainTraining(const std::vector<TrialSpec>& trials, const Machine& machine, bool by_module,
                at::ScalarType type = at::kFloat)
      : trial_(trials.front()), cuda_(machine.cuda()) {
    std::vector<Tensor> rows;
    std::vector<int64_t> seeds;
    for (const TrialSpec& t : trials) {
      const std::vector<float> start = starting_parameters(t);
      rows.push_back(at::tensor(at::ArrayRef<float>(start.data(), start.size()), at::kFloat));
      seeds.push_back(static_cast<int64_t>(t.data_seed));
    }
    const at::Device device = device_of(machine.device);
    network_ = plain_network(trial_.network, trial_.task.n, at::stack(rows).to(device, type), by_module);
    seeds_ = at::tensor(seeds, at::kLong).to(device);
    steps_ = at::zeros_like(seeds_);
  }

  /// The batch of step `steps_` of every trial.
  TaskBatch batch() const {
    const Task& task = task_named(trial_.task.name);
    const int64_t size = trial_.protocol.batch;
    if (cuda_) return task.sample(trial_.task, DeviceDraw(seeds_, steps_, size));
    return task.sample(trial_.task, *cpu_draw(trial_.data_seed, steps_[0].item<int64_t>(), 0, size));
  }

  struct Slope {
    Tensor loss, gradient;  // [trials], [trials, size]
  };
  Slope slope() const {
    const Tensor loss = network_->loss(batch());
    const Tensor gradient = network_->flat(torch::autograd::grad({loss.sum()}, network_->leaves()));
    return {loss.detach(), gradient};
  }

  /// As a first program does it: backward, then an optimizer that goes through the parameters.
  std::function<void()> eager() {
    const AdamW& rule = trial_.protocol.adamw;
    const auto optimizer = std::make_shared<torch::optim::AdamW>(
        network_->leaves(), torch::optim::AdamWOptions(trial_.protocol.lr)
                                .betas({rule.beta1, rule.beta2})
                                .eps(rule.epsilon)
                                .weight_decay(rule.weight_decay));
    return [this, optimizer] {
      optimizer->zero_grad();
      network_->loss(batch()).sum().backward();
      optimizer->step();
      steps_.add_(1);
    };
  }

  /// In place, on the device alone, so that a graph can replay it: few and large operations.
  std::function<void()> lean() {
    const auto moments = std::make_shared<std::vector<std::pair<Tensor, Tensor>>>();
    for (const Tensor& leaf : network_->leaves())
      moments->emplace_back(at::zeros_like(leaf), at::zeros_like(leaf));
    return [this, moments] {
      const auto gradients = torch::autograd::grad({network_->loss(batch()).sum()}, network_->leaves());
      steps_.add_(1);
      const c10::NoGradGuard no_gradients;
      const AdamW& rule = trial_.protocol.adamw;
      const Tensor step = steps_[0].to(at::kFloat);
      const Tensor rate = trial_.protocol.lr / (1 - at::pow(rule.beta1, step));
      const Tensor root = (1 - at::pow(rule.beta2, step)).rsqrt();
      for (size_t i = 0; i < gradients.size(); ++i) {
        auto& [m, v] = (*moments)[i];
        m.lerp_(gradients[i], 1 - rule.beta1);
        v.mul_(rule.beta2).addcmul_(gradients[i], gradients[i], 1 - rule.beta2);
        Tensor leaf = network_->leaves()[i];
        leaf.sub_(m.div(v.sqrt().mul_(root).add_(rule.epsilon)).mul_(rate));
      }
    };
  }

 private:
  TrialSpec trial_;
  bool cuda_;
  std::unique_ptr<PlainNetwork> network_;
  Tensor seeds_, steps_;
};

double distance(const Tensor& x, const Tensor& exact) {
  return ((x.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

double distance(const PlainTraining::Slope& x, const PlainTraining::Slope& exact) {
  return std::max(distance(x.loss, exact.loss), distance(x.gradient, exact.gradient));
}

// After the first step from zero moments m is (1 - beta1) times the gradient.
PlainTraining::Slope our_slope(const Machine& machine, const TrialSpec& trial) {
  const auto stack = fresh_stack({trial}, machine);
  std::vector<double> loss(1);
  stack->advance(1, loss);
  const std::vector<float> m = stack->state(0).m;
  const at::Device device = device_of(machine.device);
  const Tensor gradient = at::tensor(at::ArrayRef<float>(m.data(), m.size()), at::kFloat).to(device) /
                          (1 - trial.protocol.adamw.beta1);
  return {at::tensor(loss, at::kDouble).to(device), gradient.unsqueeze(0)};
}

// Ours may err twice as much as LibTorch in the same precision; LibTorch's two programs must be one function.
void verify(const Machine& machine, const TrialSpec& trial, BenchRow& row) {
  const PlainTraining::Slope exact = PlainTraining({trial}, machine, false, at::kDouble).slope();
  const double apart = distance(PlainTraining({trial}, machine, true, at::kDouble).slope(), exact);
  row.plain_error = distance(PlainTraining({trial}, machine, false).slope(), exact);
  row.error = distance(our_slope(machine, trial), exact);
  if (!(apart < 1e-9))
    row.fault = fmt::format("LibTorch's two programs are {:.1e} apart in float64", apart);
  else if (!(row.error <= 2 * row.plain_error + std::numeric_limits<float>::epsilon()))
    row.fault = fmt::format("ours is off by {:.1e}, LibTorch by {:.1e}", row.error, row.plain_error);
}

// As many trials at once as fit the memory.
double best_seconds(const Machine& machine, std::vector<TrialSpec> trials) {
  while (true) {
    try {
      PlainTraining training(trials, machine, false);
      return seconds_of(machine, captured(machine.device, training.lean())) /
             static_cast<double>(trials.size());
    } catch (const c10::OutOfMemoryError&) {
      if (trials.size() == 1) return kNone;
      trials.resize(trials.size() / 2);
    }
  }
}

}  // namespace

std::string name_of(const StepShape& s) {
  return fmt::format("L={} W={} heads={}", s.layers, s.modules, s.heads) +
         (s.stack > 1 ? fmt::format(" x{}", s.stack) : "");
}

std::vector<StepShape> study_shapes(const Machine& machine) {
  if (machine.cuda())
    return {{.layers = 1, .modules = 1, .heads = 8, .stack = 21},
            {.layers = 3, .modules = 8, .heads = 8, .stack = 5},
            {.layers = 5, .modules = 64, .heads = 1, .stack = 5},
            {.layers = 5, .modules = 64, .heads = 8, .stack = 5},
            {.layers = 5, .modules = 64, .heads = 64, .stack = 5}};
  std::vector<StepShape> shapes;
  for (const int64_t modules : {1, 8})
    for (const int64_t heads : {1, 8, 64}) shapes.push_back({.modules = modules, .heads = heads});
  return shapes;
}

std::vector<TrialSpec> trials_of(const StepShape& s) {
  std::vector<TrialSpec> trials;
  for (int64_t i = 0; i < s.stack; ++i) {
    TrialSpec t;
    t.task = {.name = "farthest", .d = s.d, .n = s.tokens};
    AttentionSpec a;
    a.modules = s.modules;
    a.heads = a.kv_heads = s.modules * s.heads;
    a.d_qk = a.d_v = s.d / s.heads;
    a.scale = 1 / std::sqrt(static_cast<double>(a.d_qk));
    t.network = points_encoder(s.d,
                               classic_block(NormPlace::post, fused_norm(NormKind::unit), a, "mlp",
                                             {.width = s.mlp, .activation = Activation::relu}),
                               s.layers, s.d);
    t.protocol = {.steps = kSteps, .batch = s.batch, .lr = 1e-3, .warmup = 0, .schedule = Schedule::constant};
    t.protocol.test_sequences = s.batch;
    t.init_seed = 2 * static_cast<uint64_t>(i) + 1;
    t.data_seed = 2 * static_cast<uint64_t>(i) + 2;
    trials.push_back(std::move(t));
  }
  return trials;
}

std::unique_ptr<Stack> fresh_stack(const std::vector<TrialSpec>& trials, const Machine& machine) {
  std::vector<TrainState> states;
  for (const TrialSpec& t : trials) states.push_back(starting_state(t));
  return make_stack(trials, states,
                    {.device = machine.device, .threads = machine.threads, .tf32 = machine.tf32});
}

double step_flops(const TrialSpec& t) { return training_flops(t) / static_cast<double>(t.protocol.steps); }

double step_bytes(const TrialSpec& t) {
  const double parameters = static_cast<double>(parameter_count(t.network));
  const double inputs =
      static_cast<double>(t.protocol.batch * tokens_of(t) * t.network.width * t.network.depth());
  const double reads = 2 * parameters, gradients = 2 * parameters, state = 6 * parameters;
  return sizeof(float) * (reads + gradients + state + 2 * inputs);
}

double our_step(const Machine& machine, const std::vector<TrialSpec>& trials) {
  const auto stack = fresh_stack(trials, machine);
  std::vector<double> losses(trials.size());
  // The host waits for the losses: a study does that every hundred steps, not after each.
  const int64_t steps = machine.cuda() ? 10 : 1;
  stack->advance(4, losses);  // eager steps and the capture of the graph
  return seconds_of(machine, [&] { stack->advance(steps, losses); }) / static_cast<double>(steps);
}

BenchRow measure_step(Machine& machine, const StepShape& shape) {
  BenchRow row;
  row.name = name_of(shape);
  const std::vector<TrialSpec> trials = trials_of(shape);
  verify(machine, trials.front(), row);
  if (!row.fault.empty()) return row;
  measure_rates(machine);
  row.ours = 1e3 * our_step(machine, trials) / static_cast<double>(trials.size());
  measure_rates(machine);
  {
    PlainTraining training({trials.front()}, machine, true);
    row.eager = 1e3 * seconds_of(machine, training.eager());
  }
  row.best = 1e3 * best_seconds(machine, machine.cuda() ? trials : std::vector{trials.front()});
  row.flops = step_flops(trials.front());
  row.bytes = step_bytes(trials.front());
  return row;
}

}  // namespace rankscope
