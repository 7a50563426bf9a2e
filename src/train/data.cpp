#include "train/data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/philox.h"
#include "base/stream_name.h"
#include "ops/normals.h"
#include "ops/squared_error.h"
#include "tasks/unasked.h"

namespace rankscope {
namespace {

constexpr int64_t kPlane = 2;

class CpuDraw : public Draw {
 public:
  CpuDraw(uint64_t seed, int64_t step, int64_t first, int64_t sequences)
      : seed_(seed), step_(static_cast<uint32_t>(step)), first_(first), sequences_(sequences) {}
  at::Tensor normals(uint32_t stream, int64_t count) const override {
    return draw_normals(seed_, stream, step_, first_ * count, sequences_ * count).view({sequences_, count});
  }

 private:
  uint64_t seed_;
  uint32_t step_;
  int64_t first_, sequences_;
};

class Fresh : public TrialData {
 public:
  explicit Fresh(const TrialSpec& t) : t_(t), task_(task_named(t.task.name)) {}
  int64_t batch(int64_t) const override { return t_.protocol.batch; }
  TaskBatch train(int64_t step, int64_t first, int64_t count) const override {
    return task_.sample(t_.task, CpuDraw(t_.data_seed, data_step(t_.protocol, step), first, count));
  }
  double weight(int64_t) const override {
    return 1.0 / static_cast<double>(t_.protocol.batch * task_.answers(t_.task));
  }
  TaskBatch test(int64_t first, int64_t count) const override {
    return task_.sample(t_.task, CpuDraw(kTestSeed, 0, first, count));
  }

 private:
  TrialSpec t_;
  const Task& task_;
};

class FromSet : public TrialData {
 public:
  explicit FromSet(const TrialSpec& t) : t_(t), order_(static_cast<size_t>(t.set->sequences())) {
    for (int64_t s = 0; s < set().sequences(); ++s) {
      const int64_t length = set().length(s);
      const auto row = set().labels.begin() + (set().labels.empty() ? 0 : s * set().tokens);
      asked_.push_back(length - (set().labels.empty() ? 0 : std::count(row, row + length, kUnasked)));
    }
  }

  void begin_step(int64_t step) override {
    const int64_t epoch = step / steps_an_epoch();
    if (epoch != epoch_) new_order(epoch);
    labels_ = 0;
    for (const int64_t s : chosen(step, 0, batch(step))) labels_ += asked_[static_cast<size_t>(s)];
  }
  int64_t batch(int64_t step) const override {
    const int64_t first = step % steps_an_epoch() * t_.protocol.batch;
    return std::min(t_.protocol.batch, set().sequences() - first);
  }
  TaskBatch train(int64_t step, int64_t first, int64_t count) const override {
    return batch_of(set(), chosen(step, first, count));
  }
  /// Cross entropy is averaged over the labels of the batch, squared errors are summed.
  double weight(int64_t) const override {
    return set().targets.empty() ? 1.0 / static_cast<double>(labels_) : 1.0;
  }
  TaskBatch test(int64_t first, int64_t count) const override {
    std::vector<int64_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), first);
    return batch_of(set(), all);
  }

 private:
  const TokenSet& set() const { return *t_.set; }
  int64_t steps_an_epoch() const { return (set().sequences() + t_.protocol.batch - 1) / t_.protocol.batch; }
  std::vector<int64_t> chosen(int64_t step, int64_t first, int64_t count) const {
    const auto from = order_.begin() + step % steps_an_epoch() * t_.protocol.batch + first;
    return {from, from + count};
  }
  void new_order(int64_t epoch) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), int64_t{0});
    if (!t_.protocol.shuffle) return;
    const Philox random{t_.data_seed, stream_of("order"), static_cast<uint32_t>(epoch)};
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i, i)]);
  }

  TrialSpec t_;
  std::vector<int64_t> order_, asked_;  // asked_: labels of each sequence
  int64_t epoch_ = -1, labels_ = 0;
};

// What the chosen sequences have in a table with `width` numbers a token.
template <class T>
std::vector<T> rows_of(const std::vector<T>& table, const TokenSet& set,
                       const std::vector<int64_t>& sequences, int64_t width) {
  std::vector<T> out;
  for (const int64_t s : sequences) {
    const auto row = table.begin() + width * s * set.tokens;
    out.insert(out.end(), row, row + width * set.length(s));
  }
  return out;
}

}  // namespace

std::unique_ptr<TrialData> data_of(const TrialSpec& trial) {
  if (trial.set) return std::make_unique<FromSet>(trial);
  return std::make_unique<Fresh>(trial);
}

std::unique_ptr<Draw> cpu_draw(uint64_t seed, int64_t step, int64_t first, int64_t count) {
  return std::make_unique<CpuDraw>(seed, step, first, count);
}

uint64_t dropout_seed(const TrialSpec& trial, int64_t step, int64_t tile) {
  const Philox seeds{trial.data_seed, stream_of("dropout"), static_cast<uint32_t>(tile)};
  return seeds.below(UINT64_MAX, static_cast<uint64_t>(step));
}

TaskBatch batch_of(const TokenSet& set, const std::vector<int64_t>& sequences) {
  TaskBatch out;
  out.sequences = static_cast<int64_t>(sequences.size());
  for (const int64_t s : sequences) out.lengths.push_back(set.length(s));
  const auto plane = [&](const std::vector<double>& table) {
    return at::tensor(rows_of(table, set, sequences, kPlane), at::kDouble)
        .view({out.sequences, -1, kPlane})
        .to(at::kFloat);
  };
  if (set.ids.empty())
    out.tokens = plane(set.points);
  else
    out.ids = at::tensor(rows_of(set.ids, set, sequences, 1), at::kLong);
  if (set.targets.empty())
    out.labels = at::tensor(rows_of(set.labels, set, sequences, 1), at::kLong);
  else
    out.target = plane(set.targets);
  return out;
}

at::Tensor loss_of(const at::Tensor& answers, const TaskBatch& batch, double weight) {
  if (!batch.labels.defined()) return squared_error_sum(answers, batch.target, weight, false);
  return at::cross_entropy_loss(answers, batch.labels, {}, at::Reduction::Sum, kUnasked) * weight;
}

}  // namespace rankscope
