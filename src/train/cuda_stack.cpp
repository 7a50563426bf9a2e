// On CUDA all trials of a stack go through every product at once, and the whole step, data included, is
// captured as one graph and replayed: nothing comes back to the host but a sum of losses now and then.
#include "train/cuda_stack.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/GradMode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/cuda/train.h"
#include "ops/adamw.h"
#include "ops/normals.h"
#include "ops/squared_error.h"
#include "tensors/torch_compat.h"
#include "train/fused_forward.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr int64_t kAlignment = 32;  // floats, 128 bytes: the fast products want their factors aligned
constexpr int64_t kEagerSteps = 3;  // before the graph is taken: libraries set themselves up on first use

class CudaDraw : public Draw {
 public:
  CudaDraw(const at::Tensor& seeds, const at::Tensor& steps, int64_t sequences)
      : seeds_(seeds), steps_(steps), sequences_(sequences) {}
  at::Tensor normals(uint32_t stream, int64_t count) const override {
    return draw_normals(seeds_, stream, steps_, sequences_ * count).view({seeds_.size(0), sequences_, count});
  }

 private:
  at::Tensor seeds_, steps_;
  int64_t sequences_;
};

class CudaStack : public Stack {
 public:
  CudaStack(const std::vector<TrialSpec>& trials, const std::vector<TrainState>& states,
            const StackOptions& options)
      : trials_(trials),
        task_(task_named(trials.front().task.name)),
        plain_(trials.front().network),
        layout_(trials.front().network, kAlignment),
        device_(device_of(options.device)),
        stream_(c10::cuda::getStreamFromPool(false,
                                             device_.has_index() ? device_.index() : c10::DeviceIndex(0))) {
    at::globalContext().setFloat32MatmulPrecision(options.tf32 ? "high" : "highest");
    const c10::cuda::CUDAStreamGuard guard(stream_);
    const auto T = static_cast<int64_t>(trials.size());
    const auto floats = [&](auto member) {
      std::vector<at::Tensor> rows;
      for (const TrainState& s : states) {
        rows.push_back(aligned(s.*member));
      }
      return at::stack(rows).to(device_);
    };
    parameters_ = floats(&TrainState::parameters);
    m_ = floats(&TrainState::m);
    v_ = floats(&TrainState::v);
    const auto integers = at::TensorOptions().dtype(at::kLong);
    at::Tensor seeds = at::empty({T}, integers), steps = at::empty({T}, integers);
    at::Tensor rates = at::empty({T, protocol().steps}, at::kFloat);
    for (int64_t t = 0; t < T; ++t) {
      const TrialSpec& spec = trials_[static_cast<size_t>(t)];
      specs_.push_back(&spec.network);
      seeds[t] = static_cast<int64_t>(spec.data_seed);
      steps[t] = states[static_cast<size_t>(t)].step;
      const std::vector<float> rate = learning_rates(spec.protocol);
      rates[t].copy_(at::tensor(at::ArrayRef<float>(rate.data(), rate.size()), at::kFloat));
    }
    step_ = states.front().step;
    seeds_ = seeds.to(device_);
    steps_ = steps.to(device_);
    rates_ = rates.to(device_);
    alive_ = at::ones({T}, at::TensorOptions().dtype(at::kInt).device(device_));
    losses_ = at::zeros({T}, at::TensorOptions().dtype(at::kDouble).device(device_));
    views_ = std::make_unique<ParameterViews>(layout_, parameters_, true,
                                              fused_forward_covers(trials.front().network));
    make_test_set();
  }

  ~CudaStack() override {
    graph_.reset();
    c10::cuda::CUDACachingAllocator::emptyCache();  // the next stack may need what this one held
  }

  void advance(int64_t count, std::vector<double>& losses) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    for (int64_t i = 0; i < count; ++i) {
      if (eager_ < kEagerSteps) {
        step();
        ++eager_;
      } else {
        if (graph_ == nullptr) capture();
        graph_->replay();
      }
    }
    step_ += count;
    const at::Tensor sums = losses_.cpu();
    losses_.zero_();
    for (size_t t = 0; t < losses.size(); ++t) losses[t] += sums[static_cast<int64_t>(t)].item<double>();
  }

  std::vector<Score> evaluate() override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    const c10::NoGradGuard no_gradients;
    const auto T = static_cast<int64_t>(trials_.size());
    std::vector<at::Tensor> errors;
    for (int64_t first = 0; first < protocol().test_sequences; first += protocol().batch) {
      const int64_t count = std::min(protocol().batch, protocol().test_sequences - first);
      const auto part = [&](const at::Tensor& x) {
        if (!x.defined()) return x;
        std::vector<int64_t> shape = x.sizes().vec();
        shape[0] = T;
        shape[1] = count;
        return x.narrow(1, first, count).expand(shape).contiguous();
      };
      const TaskBatch batch{part(test_.tokens), part(test_.queries), part(test_.target)};
      errors.push_back(squared_error(forward(specs_, *views_, batch), batch.target));
    }
    const at::Tensor all = at::cat(errors, 1).to(at::kDouble);
    const at::Tensor mean = all.mean(1).cpu(), spread = all.std(1, true).cpu();
    std::vector<Score> out;
    for (int64_t t = 0; t < T; ++t)
      out.push_back({mean[t].item<double>(),
                     spread[t].item<double>() / std::sqrt(static_cast<double>(protocol().test_sequences))});
    return out;
  }

  TrainState state(size_t trial) const override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    const auto copy = [&](const at::Tensor& x) { return packed(x[static_cast<int64_t>(trial)].cpu()); };
    return {copy(parameters_), copy(m_), copy(v_), step_};
  }

  void drop(size_t trial) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    alive_[static_cast<int64_t>(trial)] = 0;
  }

 private:
  const Protocol& protocol() const { return trials_.front().protocol; }

  // Calls each(plain offset, aligned offset, count) for every parameter.
  template <class Each>
  void for_each_slot(Each each) const {
    for (size_t i = 0; i < plain_.slots().size(); ++i) {
      const int64_t from = plain_.slots()[i].offset;
      const int64_t end = i + 1 < plain_.slots().size() ? plain_.slots()[i + 1].offset : plain_.size();
      each(from, layout_.slots()[i].offset, end - from);
    }
  }
  at::Tensor aligned(const std::vector<float>& values) const {
    at::Tensor out = at::zeros({layout_.size()}, at::kFloat);
    for_each_slot([&](int64_t from, int64_t to, int64_t count) {
      std::copy_n(values.data() + from, count, out.data_ptr<float>() + to);
    });
    return out;
  }
  std::vector<float> packed(const at::Tensor& values) const {
    std::vector<float> out(static_cast<size_t>(plain_.size()));
    for_each_slot([&](int64_t to, int64_t from, int64_t count) {
      std::copy_n(values.data_ptr<float>() + from, count, out.data() + to);
    });
    return out;
  }

  // The same sequences as on the CPU, drawn once.
  void make_test_set() {
    const auto options = at::TensorOptions().dtype(at::kLong).device(device_);
    const at::Tensor seed = at::full({1}, static_cast<int64_t>(kTestSeed), options);
    test_ = task_.sample(trials_.front().task,
                         CudaDraw(seed, at::zeros({1}, options), protocol().test_sequences));
  }

  void step() {
    const at::Tensor data = protocol().replay ? steps_.remainder(kReplay) : steps_;
    const TaskBatch batch = task_.sample(trials_.front().task, CudaDraw(seeds_, data, protocol().batch));
    const at::Tensor loss =
        squared_error_sum(forward(specs_, *views_, batch), batch.target,
                          1.0 / static_cast<double>(protocol().batch * batch.target.size(-2)), true);
    const auto gradients = gradients_of(loss.sum(), views_->leaves());
    losses_.add_(loss.detach().to(at::kDouble));
    apply_adamw(protocol().adamw, steps_, rates_, alive_, gradients, views_->offsets(), parameters_, m_, v_);
    steps_.add_(1);
  }

  void capture() {
    stream_.synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();  // the graph has a pool of its own
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    graph_->capture_begin();
    step();
    graph_->capture_end();
  }

  std::vector<TrialSpec> trials_;
  const Task& task_;
  Layout plain_, layout_;  // as a checkpoint has them, as the device has them
  at::Device device_;
  c10::cuda::CUDAStream stream_;
  std::vector<const ModelSpec*> specs_;
  at::Tensor parameters_, m_, v_;              // [trials, size]
  at::Tensor seeds_, steps_, alive_, losses_;  // [trials]
  at::Tensor rates_;                           // [trials, steps]
  std::unique_ptr<ParameterViews> views_;
  TaskBatch test_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  int64_t step_ = 0, eager_ = 0;
};

}  // namespace

std::unique_ptr<Stack> make_cuda_stack(const std::vector<TrialSpec>& trials,
                                       const std::vector<TrainState>& states, const StackOptions& options) {
  if (!cuda::available()) throw Error("this build has no CUDA kernels").hint("build where nvcc is");
  return std::make_unique<CudaStack>(trials, states, options);
}

int64_t cuda_stack_limit(const TrialSpec& trial, const std::string& device) {
  const ModelSpec& n = trial.network;
  const AttentionSpec& a = n.blocks.front().attention();
  const BranchSpec* mlp = n.blocks.front().mlp_branch();
  const double hidden = mlp ? static_cast<double>(mlp->mlp()->width) : 0;
  const double tokens = static_cast<double>(trial.protocol.batch * (tokens_of(trial) + trial.task.queries));
  const double qk = static_cast<double>(a.heads * a.d_qk), D = static_cast<double>(n.width);
  const double v = static_cast<double>(a.heads * a.d_v);
  const double kept = 2 * qk + 2 * v + 8 * D + hidden;         // floats a token and layer, for backward
  const double passing = 4 * qk + 4 * v + 8 * D + 3 * hidden;  // while one layer is worked on
  const double bytes = 4 * (tokens * (static_cast<double>(n.depth()) * kept + passing) +
                            5 * static_cast<double>(Layout(n).size()));
  const c10::cuda::CUDAGuard guard(device_of(device));
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 1;
  return std::clamp<int64_t>(static_cast<int64_t>(0.6 * static_cast<double>(free) / bytes), 1,
                             cuda::kMaxTrials);
}

}  // namespace rankscope
