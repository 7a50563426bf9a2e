#include "train/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rankscope {
namespace {

double cosine_to(double lr, double end, double progress) {
  return end + (lr - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

// Per epoch e of 100 steps: e lr / (w - 1) for e < w = epochs / 20, then half a cosine to 0.
double replayed_rate(const Protocol& p, int64_t step) {
  const int64_t epochs = std::max<int64_t>(1, p.steps / kWindow), warm = epochs / 20, e = step / kWindow;
  if (e < warm) return warm == 1 ? p.lr : p.lr * static_cast<double>(e) / static_cast<double>(warm - 1);
  return cosine_to(p.lr, 0,
                   static_cast<double>(e - warm) / static_cast<double>(std::max<int64_t>(1, epochs - warm)));
}

}  // namespace

double learning_rate(const Protocol& p, int64_t step) {
  if (p.replay) return replayed_rate(p, step);
  const auto warm = static_cast<int64_t>(std::llround(p.warmup * static_cast<double>(p.steps)));
  if (step < warm) return p.lr * static_cast<double>(step + 1) / static_cast<double>(warm);
  if (!p.cosine) return p.lr;
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
  const NetworkSpec& n = t.network;
  const TaskSpec& k = t.task;
  const Protocol& p = t.protocol;
  return fmt::format(
      "{} {} d={} n={} q={} | encoder={} L={} W={} qk={} v={} hard={} mlp={} norm={}{} pos={}{} embed={} "
      "bias={}"
      " heads={} | steps={} batch={} end={} warm={} cos={} replay={} adam={},{},{},{} test={} eval={}",
      k.name, k.data, k.d, k.n, k.queries, n.encoder, n.layers, n.modules, n.total_heads() * n.rank,
      n.total_heads() * n.v_rank, n.hard, n.mlp, static_cast<int>(n.norm), static_cast<int>(n.place),
      static_cast<int>(n.positions), n.position_width, n.embed, n.bias,
      n.encoder ? 0 : n.heads,  // the one-layer model's value map has a block a head
      p.steps, p.batch, p.lr_end, p.warmup, p.cosine, p.replay, p.adamw.beta1, p.adamw.beta2, p.adamw.epsilon,
      p.adamw.weight_decay, p.test_sequences, eval_interval(p));
}

double training_flops(const TrialSpec& t) {
  return 3.0 * forward_flops(t.network, t.task) * static_cast<double>(t.protocol.batch * t.protocol.steps);
}

}  // namespace rankscope
