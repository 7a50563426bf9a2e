#include "train/token_trainer.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "base/error.h"
#include "base/philox.h"
#include "base/stream_name.h"
#include "checkpoint/safetensors.h"
#include "kernels/cpu/adamw.h"
#include "train/curve.h"
#include "train/token_model.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

using at::Tensor;

constexpr const char *kCheckpoint = "checkpoint.safetensors", *kModel = "model.safetensors";
constexpr double kStepFactor = 0.91;  // of the learning rate, at each of these epochs
constexpr int64_t kStepEpochs[] = {15, 30, 40, 50, 60};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Where a training is: equal states continue equally.
struct State {
  std::vector<float> parameters, m, v;
  int64_t step = 0;
  double loss_sum = 0, last_loss = 0, seconds = 0;  // the sum is over the epoch so far
};

void copy_out(const SafetensorsFile& file, const std::string& name, void* to, size_t bytes) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end() || file.bytes(found->second).size() != bytes)
    throw Error(fmt::format("\"{}\" is missing or of another size than this trial's", name))
        .in(file.path().string())
        .hint("delete the trial's folder to start it again");
  std::memcpy(to, file.bytes(found->second).data(), bytes);
}

void save(const fs::path& path, const State& s, bool finished) {
  const auto size = static_cast<int64_t>(s.parameters.size());
  const double record[] = {s.loss_sum, s.last_loss, s.seconds};
  std::vector<TensorToWrite> out{
      {"parameters", StoredType::f32, {size}, std::as_bytes(std::span(s.parameters))},
      {"step", StoredType::i64, {1}, std::as_bytes(std::span(&s.step, 1))},
      {"record", StoredType::f64, {3}, std::as_bytes(std::span(record))}};
  if (!finished) {
    out.push_back({"adam.m", StoredType::f32, {size}, std::as_bytes(std::span(s.m))});
    out.push_back({"adam.v", StoredType::f32, {size}, std::as_bytes(std::span(s.v))});
  }
  write_safetensors(path, out);
}

State load(const fs::path& path, int64_t size, bool finished) {
  const SafetensorsFile file(path);
  State s;
  s.parameters.resize(static_cast<size_t>(size));
  const size_t bytes = s.parameters.size() * sizeof(float);
  double record[3];
  copy_out(file, "parameters", s.parameters.data(), bytes);
  copy_out(file, "step", &s.step, sizeof s.step);
  copy_out(file, "record", record, sizeof record);
  s.loss_sum = record[0];
  s.last_loss = record[1];
  s.seconds = record[2];
  if (finished) return s;
  s.m.resize(s.parameters.size());
  s.v.resize(s.parameters.size());
  copy_out(file, "adam.m", s.m.data(), bytes);
  copy_out(file, "adam.v", s.v.data(), bytes);
  return s;
}

// The order of an epoch's sequences.
std::vector<int64_t> order_of(const TokenTraining& t, int64_t sequences, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(sequences));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!t.recipe.shuffle) return order;
  const Philox random{t.data_seed, stream_of("order"), static_cast<uint32_t>(epoch)};
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

class Trainer {
 public:
  Trainer(const TokenTraining& t, const TokenSet& set, const TokenTrainOptions& options)
      : t_(t),
        set_(set),
        options_(options),
        sequences_(set.sequences()),
        epoch_steps_((sequences_ + t.recipe.batch - 1) / t.recipe.batch),
        state_(start()),
        curve_(options.folder / "curve.jsonl", state_.step),
        flat_(at::from_blob(state_.parameters.data(), {static_cast<int64_t>(state_.parameters.size())},
                            at::kFloat)),
        views_(t.network, flat_, true) {}

  std::optional<TokenTrained> run() {
    const int64_t steps = training_steps(t_, sequences_);
    double saved_at = now();
    while (state_.step < steps) {
      const double before = now();
      const double loss = step();
      state_.seconds += now() - before;
      if (!std::isfinite(loss)) return result(true);
      if (state_.step % epoch_steps_ == 0) end_epoch();
      if (options_.progress) options_.progress(state_.step, loss);
      const bool stop = options_.stop != nullptr && options_.stop->load() && state_.step < steps;
      if (stop || now() - saved_at > options_.checkpoint_seconds) {
        save(options_.folder / kCheckpoint, state_, false);
        saved_at = now();
      }
      if (stop) return std::nullopt;
    }
    save(options_.folder / kModel, state_, true);
    fs::remove(options_.folder / kCheckpoint);
    return result(false);
  }

 private:
  State start() const {
    const fs::path file = options_.folder / kCheckpoint;
    if (fs::exists(file)) return load(file, parameter_count(t_.network), false);
    State s;
    s.parameters = initial_parameters(t_.network, t_.init_seed);
    s.m.assign(s.parameters.size(), 0.0f);
    s.v = s.m;
    return s;
  }

  double step() {
    const int64_t epoch = state_.step / epoch_steps_, first = state_.step % epoch_steps_ * t_.recipe.batch;
    if (epoch != epoch_) order_ = order_of(t_, sequences_, epoch_ = epoch);
    const int64_t last = std::min(first + t_.recipe.batch, sequences_);
    const std::vector<int64_t> chosen(order_.begin() + first, order_.begin() + last);
    const TokenBatch batch = batch_of(set_, chosen);
    const Philox seeds{t_.data_seed, stream_of("dropout"), 0};
    const Dropout dropout{t_.recipe.dropout, seeds.below(UINT64_MAX, static_cast<uint64_t>(state_.step))};
    const Tensor loss = token_loss(token_forward(t_.network, views_, batch, dropout), set_, chosen, batch);
    const double value = loss.item<double>();
    if (std::isfinite(value)) update(loss);
    state_.loss_sum += value;
    ++state_.step;
    return value;
  }

  void update(const Tensor& loss) {
    std::vector<Tensor> gradients = torch::autograd::grad({loss}, views_.leaves());
    const c10::NoGradGuard no_grad;
    for (Tensor& g : gradients) g = g.reshape({-1});
    Tensor all = at::cat(gradients);
    if (t_.recipe.l2 > 0) all.add_(flat_, t_.recipe.l2);
    if (t_.recipe.clip > 0)
      if (const double norm = all.norm().item<double>(); norm > t_.recipe.clip)
        all.mul_(t_.recipe.clip / norm);
    const double lr = learning_rate(t_.recipe, state_.step, epoch_steps_);
    adamw_update(AdamW{}, static_cast<float>(lr), state_.step + 1, all.numel(), all.data_ptr<float>(),
                 state_.parameters.data(), state_.m.data(), state_.v.data());
  }

  void end_epoch() {
    state_.last_loss = state_.loss_sum / static_cast<double>(epoch_steps_);
    state_.loss_sum = 0;
    curve_.add({.step = state_.step,
                .loss = state_.last_loss,
                .lr = learning_rate(t_.recipe, state_.step - 1, epoch_steps_)});
  }

  TokenTrained result(bool diverged) const {
    return {state_.parameters, state_.step, state_.last_loss, state_.seconds, diverged};
  }

  const TokenTraining& t_;
  const TokenSet& set_;
  const TokenTrainOptions& options_;
  int64_t sequences_, epoch_steps_, epoch_ = -1;
  State state_;
  Curve curve_;
  Tensor flat_;
  TokenParameters views_;
  std::vector<int64_t> order_;
};

}  // namespace

int64_t training_steps(const TokenTraining& t, int64_t sequences) {
  return t.recipe.epochs * ((sequences + t.recipe.batch - 1) / t.recipe.batch);
}

double learning_rate(const TokenRecipe& r, int64_t step, int64_t steps_an_epoch) {
  switch (r.schedule) {
    case TokenRecipe::Schedule::constant:
      return r.lr;
    case TokenRecipe::Schedule::linear:
      return r.lr * (1 - static_cast<double>(step) / static_cast<double>(r.epochs * steps_an_epoch));
    case TokenRecipe::Schedule::steps: {
      const int64_t epoch = step / steps_an_epoch;
      const auto passed = std::count_if(std::begin(kStepEpochs), std::end(kStepEpochs),
                                        [&](int64_t at) { return epoch >= at; });
      return r.lr * std::pow(kStepFactor, static_cast<double>(passed));
    }
  }
  return r.lr;
}

Tensor token_loss(const Tensor& answers, const TokenSet& set, const std::vector<int64_t>& sequences,
                  const TokenBatch& batch) {
  const int64_t T = (batch.ids.defined() ? batch.ids : batch.points).size(1);
  std::vector<double> targets;
  std::vector<int64_t> labels;
  for (const int64_t s : sequences)
    for (int64_t i = s * set.tokens; i < s * set.tokens + T; ++i) {
      if (set.targets.empty())
        labels.push_back(set.labels[static_cast<size_t>(i)]);
      else
        targets.insert(targets.end(), {set.targets[static_cast<size_t>(2 * i)],
                                       set.targets[static_cast<size_t>(2 * i + 1)]});
    }
  if (labels.empty())
    return (answers - at::tensor(targets, at::kDouble).view({-1, 2}).to(answers.scalar_type()))
        .square()
        .sum();
  return at::cross_entropy_loss(answers, at::tensor(labels, at::kLong), {}, at::Reduction::Mean, kNoToken);
}

std::optional<TokenTrained> load_trained(const fs::path& folder, const TokenNetwork& network) {
  if (!fs::exists(folder / kModel)) return std::nullopt;
  State s = load(folder / kModel, parameter_count(network), true);
  return TokenTrained{std::move(s.parameters), s.step, s.last_loss, s.seconds, false};
}

std::optional<TokenTrained> train_tokens(const TokenTraining& t, const TokenSet& set,
                                         const TokenTrainOptions& options) {
  fs::create_directories(options.folder);
  if (auto done = load_trained(options.folder, t.network)) return done;
  return Trainer(t, set, options).run();
}

}  // namespace rankscope
