#include "train/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "parts/parameters.h"
#include "parts/program.h"
#include "spec/json.h"

namespace rankscope {
namespace {

constexpr double kEpochFactor = 0.91;  // Schedule::epochs
constexpr int64_t kEpochs[] = {15, 30, 40, 50, 60};

double cosine_to(double lr, double end, double progress) {
  return end + (lr - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

// Per epoch e of 100 steps: e lr / (w - 1) for e < w = epochs / 20, then half a cosine to 0.
double replayed_rate(const Protocol& p, int64_t step) {
  const int64_t epochs = std::max<int64_t>(1, p.steps / kReplay), warm = epochs / 20, e = step / kReplay;
  if (e < warm) return warm == 1 ? p.lr : p.lr * static_cast<double>(e) / static_cast<double>(warm - 1);
  return cosine_to(p.lr, 0,
                   static_cast<double>(e - warm) / static_cast<double>(std::max<int64_t>(1, epochs - warm)));
}

double epoch_rate(const Protocol& p, int64_t step) {
  const int64_t epoch = step / p.window;
  const auto passed =
      std::count_if(std::begin(kEpochs), std::end(kEpochs), [&](int64_t at) { return epoch >= at; });
  return p.lr * std::pow(kEpochFactor, static_cast<double>(passed));
}

std::vector<std::vector<int64_t>> shapes(const BranchSpec& branch, int64_t width) {
  std::vector<std::vector<int64_t>> out;
  for (const Parameter& p : program_of(branch, width).parameters) out.push_back(p.shape);
  return out;
}

// Heads are a reshape: trials that differ in them alone have parameters of the same shapes, unless an option
// of the part gives every head some of its own.
void forget_heads(ModelSpec& spec) {
  for (BlockSpec& block : spec.blocks)
    for (BranchSpec& branch : block.branches) {
      AttentionSpec* a = branch.attention();
      if (a == nullptr || a->kv_heads != a->heads || !part_named(branch.part.name).heads_are_a_reshape)
        continue;
      const BranchSpec before = branch;
      a->d_qk *= a->heads;
      a->d_v *= a->heads;
      a->heads = a->kv_heads = 1;
      a->scale = 1;
      if (shapes(branch, spec.width) != shapes(before, spec.width)) branch = before;
    }
}

}  // namespace

double learning_rate(const Protocol& p, int64_t step) {
  if (p.replay) return replayed_rate(p, step);
  if (p.schedule == Schedule::linear)
    return p.lr * (1 - static_cast<double>(step) / static_cast<double>(p.steps));
  if (p.schedule == Schedule::epochs) return epoch_rate(p, step);
  const auto warm = static_cast<int64_t>(std::llround(p.warmup * static_cast<double>(p.steps)));
  if (step < warm) return p.lr * static_cast<double>(step + 1) / static_cast<double>(warm);
  if (p.schedule == Schedule::constant) return p.lr;
  return cosine_to(
      p.lr, p.lr * p.lr_end,
      static_cast<double>(step - warm) / static_cast<double>(std::max<int64_t>(1, p.steps - warm)));
}

std::vector<float> learning_rates(const Protocol& p) {
  std::vector<float> out(static_cast<size_t>(p.steps));
  for (int64_t s = 0; s < p.steps; ++s) out[static_cast<size_t>(s)] = static_cast<float>(learning_rate(p, s));
  return out;
}

int64_t eval_interval(const Protocol& p) {
  return p.eval_every > 0 ? p.eval_every : std::max<int64_t>(1, p.steps / 20);
}

std::string stack_key(const TrialSpec& t) {
  ModelSpec network = t.network;
  forget_heads(network);
  network.init = {};
  const TaskSpec& k = t.task;
  const Protocol& p = t.protocol;
  return fmt::format(
      "{} {} d={} n={} q={} set={} | {} | steps={} batch={} end={} warm={} schedule={} replay={} "
      "adam={},{},{},{} "
      "l2={} clip={} dropout={} shuffle={} window={} test={} eval={}",
      k.name, k.data, k.d, k.n, k.queries, static_cast<const void*>(t.set.get()), to_json(network).dump(),
      p.steps, p.batch, p.lr_end, p.warmup, static_cast<int>(p.schedule), p.replay, p.adamw.beta1,
      p.adamw.beta2, p.adamw.epsilon, p.adamw.weight_decay, p.l2, p.clip, p.dropout, p.shuffle, p.window,
      p.test_sequences, eval_interval(p));
}

int64_t tokens_of(const TrialSpec& t) { return t.set ? t.set->tokens : token_count(t.task); }

double training_flops(const TrialSpec& t) {
  const double sequence = forward_flops(t.network, tokens_of(t), t.set ? 0 : t.task.queries);
  const Protocol& p = t.protocol;
  // The last batch of an epoch may be short.
  const int64_t sequences = t.set ? p.steps / p.window * t.set->sequences() : p.batch * p.steps;
  return 3.0 * sequence * static_cast<double>(sequences);
}

}  // namespace rankscope
