// On the CPU a tile of sequences goes through forward, loss and backward on one thread while it is in the
// cache. The tiles of a trial are shared out over a fixed number of sums, added up in order: neither the
// number of threads nor the other trials of the stack change a single bit.
#include "train/cpu_stack.h"

#include <c10/core/GradMode.h>
#include <omp.h>

#include <algorithm>

#include "base/stats.h"
#include "ops/adamw.h"
#include "train/cpu_tile.h"
#include "train/data.h"
#include "train/fused_forward.h"
#include "train/in_parallel.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr int64_t kTileTokens = 256;  // the hidden layer of a tile stays in the cache
constexpr int64_t kSums = 8;          // partial gradients of a trial: fixed, whatever the number of threads
constexpr int64_t kChunk = 1 << 14;   // parameters one thread updates at a time

at::Tensor tensor_of(const std::vector<float>& values) {
  return at::tensor(at::ArrayRef<float>(values.data(), values.size()), at::kFloat);
}

struct Trial {
  TrialSpec spec;
  std::unique_ptr<TrialData> data;
  Layout layout;
  at::Tensor parameters, m, v;
  ParameterViews views;
  std::vector<at::Tensor> sums;    // partial gradients, [P] each
  std::vector<double> sum_losses;  // of the tiles behind them
  std::vector<float> rates;
  int64_t step;
  bool dropped = false;

  Trial(const TrialSpec& s, const TrainState& state)
      : spec(s),
        data(data_of(s)),
        layout(s.network),
        parameters(tensor_of(state.parameters)),
        m(tensor_of(state.m)),
        v(tensor_of(state.v)),
        views(layout, parameters, true, fused_forward_covers(s.network) && s.protocol.dropout == 0),
        rates(learning_rates(s.protocol)),
        step(state.step) {}
};

struct Tiles {
  int64_t sequences, count, sums;
  explicit Tiles(const TrialSpec& spec) {
    sequences = std::max<int64_t>(1, kTileTokens / tokens_of(spec));
    count = (spec.protocol.batch + sequences - 1) / sequences;
    sums = std::min(count, kSums);
  }
};

class CpuStack : public Stack {
 public:
  CpuStack(const std::vector<TrialSpec>& trials, const std::vector<TrainState>& states, int threads)
      : threads_(std::max(1, threads)), tiles_(trials.front()) {
    trials_.reserve(trials.size());
    for (size_t i = 0; i < trials.size(); ++i) {
      trials_.emplace_back(trials[i], states[i]);
      Trial& t = trials_.back();
      for (int64_t s = 0; s < tiles_.sums; ++s) t.sums.push_back(at::zeros({t.layout.size()}, at::kFloat));
      t.sum_losses.assign(static_cast<size_t>(tiles_.sums), 0.0);
    }
    for (int i = 0; EncoderTile::covers(trials.front()) && i < threads_; ++i)
      tile_memory_.emplace_back(trials.front(), tiles_.sequences);
  }

  void advance(int64_t count, std::vector<double>& losses) override {
    const auto trials = static_cast<int64_t>(trials_.size());
    for (int64_t i = 0; i < count; ++i) {
      for (Trial& t : trials_) t.data->begin_step(t.step);
      each_in_parallel(threads_, trials * tiles_.sums, [&](int64_t task) {
        Trial& t = trials_[static_cast<size_t>(task / tiles_.sums)];
        if (!t.dropped) partial_gradient(t, task % tiles_.sums);
      });
      for (Trial& t : trials_) shrink(t);
      const int64_t chunks = (trials_.front().layout.size() + kChunk - 1) / kChunk;
      each_in_parallel(threads_, trials * chunks, [&](int64_t task) {
        Trial& t = trials_[static_cast<size_t>(task / chunks)];
        if (!t.dropped) update(t, task % chunks * kChunk);
      });
      for (size_t k = 0; k < trials_.size(); ++k) {
        if (trials_[k].dropped) continue;
        ++trials_[k].step;
        double loss = 0;
        for (const double part : trials_[k].sum_losses) loss += part;
        losses[k] += loss;
      }
    }
  }

  std::vector<Score> evaluate() override {
    const int64_t sequences = trials_.front().spec.protocol.test_sequences;
    const int64_t tiles = (sequences + tiles_.sequences - 1) / tiles_.sequences;
    std::vector<std::vector<double>> errors(trials_.size(),
                                            std::vector<double>(static_cast<size_t>(sequences)));
    each_in_parallel(threads_, static_cast<int64_t>(trials_.size()) * tiles, [&](int64_t task) {
      const auto k = static_cast<size_t>(task / tiles);
      if (trials_[k].dropped) return;
      const int64_t first = task % tiles * tiles_.sequences;
      test_tile(trials_[k], first, std::min(tiles_.sequences, sequences - first), errors[k].data() + first);
    });
    std::vector<Score> out;
    for (const auto& e : errors) {
      const Estimate mean = arithmetic_mean(e);
      out.push_back({mean.value, mean.stderr_});
    }
    return out;
  }

  TrainState state(size_t trial) const override {
    const Trial& t = trials_[trial];
    const auto copy = [](const at::Tensor& x) {
      return std::vector<float>(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    };
    return {copy(t.parameters), copy(t.m), copy(t.v), t.step};
  }

  void drop(size_t trial) override { trials_[trial].dropped = true; }

 private:
  // The gradient of the tiles that belong to one sum, in their order.
  void partial_gradient(Trial& t, int64_t sum) {
    float* into = t.sums[static_cast<size_t>(sum)].data_ptr<float>();
    std::fill(into, into + t.layout.size(), 0.0f);
    double loss = 0;
    for (int64_t tile = sum * tiles_.count / tiles_.sums; tile < (sum + 1) * tiles_.count / tiles_.sums;
         ++tile)
      loss += tile_gradient(t, tile, into);
    t.sum_losses[static_cast<size_t>(sum)] = loss;
  }

  double tile_gradient(const Trial& t, int64_t tile, float* into) {
    const int64_t first = tile * tiles_.sequences;
    const int64_t count = std::min(tiles_.sequences, t.data->batch(t.step) - first);
    if (count <= 0) return 0;  // the last batch of an epoch may be short
    const TaskBatch batch = t.data->train(t.step, first, count);
    const double weight = t.data->weight(t.step);
    if (!tile_memory_.empty()) {
      const at::Tensor tokens = batch.tokens.contiguous(), target = batch.target.contiguous();
      return tile_memory_[static_cast<size_t>(omp_get_thread_num())].loss(
          t.spec.network, count, tokens.data_ptr<float>(), target.data_ptr<float>(),
          static_cast<float>(weight), t.parameters.data_ptr<float>(), into);
    }
    const auto dropout = seeded_dropout(t.spec.protocol.dropout, dropout_seed(t.spec, t.step, tile));
    const at::Tensor loss = loss_of(forward({&t.spec.network}, t.views, batch, dropout.get()), batch, weight);
    const auto gradients = gradients_of(loss, t.views.leaves());
    for (size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor g = gradients[i].contiguous();
      const float* from = g.data_ptr<float>();
      float* to = into + t.views.offsets()[i];
      for (int64_t e = 0; e < g.numel(); ++e) to[e] += from[e];
    }
    return loss.item<double>();
  }

  // Adds the penalty to the gradient and cuts its norm, where the protocol says so: both need the whole sum.
  void shrink(Trial& t) {
    const Protocol& p = t.spec.protocol;
    if (t.dropped || (p.l2 == 0 && p.clip == 0)) return;
    const at::Tensor& total = t.sums.front();
    for (size_t s = 1; s < t.sums.size(); ++s) {
      total.add_(t.sums[s]);
      t.sums[s].zero_();
    }
    if (p.l2 > 0) total.add_(t.parameters, p.l2);
    if (p.clip == 0) return;
    if (const double norm = total.norm().item<double>(); norm > p.clip) total.mul_(p.clip / norm);
  }

  void update(Trial& t, int64_t first) {
    const int64_t count = std::min(kChunk, t.layout.size() - first);
    const at::Tensor gradient = t.sums.front().narrow(0, first, count);
    float* total = gradient.data_ptr<float>();
    for (size_t s = 1; s < t.sums.size(); ++s) {
      const float* part = t.sums[s].data_ptr<float>() + first;
      for (int64_t e = 0; e < count; ++e) total[e] += part[e];
    }
    apply_adamw(t.spec.protocol.adamw, t.rates[static_cast<size_t>(t.step)], t.step + 1, gradient,
                t.parameters.narrow(0, first, count), t.m.narrow(0, first, count),
                t.v.narrow(0, first, count));
  }

  void test_tile(const Trial& t, int64_t first, int64_t count, double* errors) {
    const c10::NoGradGuard no_gradients;
    const TaskBatch batch = t.data->test(first, count);
    const at::Tensor e = squared_error(forward({&t.spec.network}, t.views, batch), batch.target);
    std::copy_n(e.data_ptr<float>(), count, errors);
  }

  int threads_;
  Tiles tiles_;
  std::vector<EncoderTile> tile_memory_;  // one a thread; none where the trial is not theirs
  std::vector<Trial> trials_;
};

}  // namespace

std::unique_ptr<Stack> make_cpu_stack(const std::vector<TrialSpec>& trials,
                                      const std::vector<TrainState>& states, int threads) {
  return std::make_unique<CpuStack>(trials, states, threads);
}

}  // namespace rankscope
