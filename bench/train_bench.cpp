// How near does training come to the machine's matrix product? One training step of the encoder of the
// rank-against-heads study (d = 64, 16 tokens, batch 256, MLP 2048), data and optimizer included.
//
//   train_bench                    the CPU: FLOP/s of a step over those of a 768-cubed product in the same
//   run train_bench --device cuda      milliseconds a step and trial beside the batched PyTorch code
//   ... L,W,H,S                    layers, width, heads and stack of one's own, in TF32
//   ... L,W,H,S --one-step         one step without a graph, for a profiler
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "eager_step.h"
#include "model/torch_compat.h"
#include "train/constructions.h"
#include "train/stack.h"

using namespace rankscope;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TrialSpec trial(int64_t layers, int64_t modules, int64_t heads, uint64_t seed = 0) {
  TrialSpec t;
  t.task = {.name = "farthest", .d = 64, .n = 16};
  t.network = {.token_width = 64,
               .answer_width = 64,
               .tokens = 16,
               .layers = layers,
               .modules = modules,
               .heads = heads,
               .rank = 64 / heads,
               .v_rank = 64 / heads,
               .score_scale = 1 / std::sqrt(64.0 / static_cast<double>(heads)),
               .mlp = 2048};
  t.protocol = {.steps = 100000, .batch = 256, .lr = 1e-3};
  t.protocol.test_sequences = 256;
  t.init_seed = 2 * seed + 1;
  t.data_seed = 2 * seed + 2;
  return t;
}

std::unique_ptr<Stack> stack_of(const std::vector<TrialSpec>& trials, const StackOptions& options) {
  std::vector<TrainState> states;
  for (const TrialSpec& t : trials) {
    TrainState s;
    s.parameters = starting_parameters(t);
    s.m.assign(s.parameters.size(), 0.0f);
    s.v = s.m;
    states.push_back(std::move(s));
  }
  return make_stack(trials, states, options);
}

double product_rate() {
  const at::Tensor a = at::randn({768, 768}), b = at::randn({768, 768});
  at::Tensor c = at::mm(a, b);
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    const double start = now();
    at::mm_out(c, a, b);
    best = std::min(best, now() - start);
  }
  return 2.0 * 768 * 768 * 768 / best;
}

// Seconds a step: the median of several rounds.
template <class Steps>
double step_seconds(int rounds, int64_t steps, Steps advance) {
  std::vector<double> times;
  advance(4);
  for (int i = 0; i < rounds; ++i) {
    const double start = now();
    advance(steps);
    times.push_back((now() - start) / static_cast<double>(steps));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double step_seconds(Stack& stack, size_t trials, int rounds, int64_t steps) {
  std::vector<double> losses(trials);
  return step_seconds(rounds, steps, [&](int64_t count) { stack.advance(count, losses); });
}

// Both sides give the same losses for a few steps, before anything is timed.
void verify(const TrialSpec& t, Stack& ours, EagerStep& eager) {
  for (int i = 0; i < 3; ++i) {
    std::vector<double> loss(1);
    ours.advance(1, loss);
    const double plain = eager.step();
    if (std::abs(loss[0] - plain) > 1e-4 * plain)
      throw Error(
          fmt::format("{} heads: our loss is {}, LibTorch's {}", t.network.total_heads(), loss[0], plain));
  }
}

void on_cpu(int threads) {
  use_threads(threads);
  fmt::print("{:>3} {:>3} {:>6} {:>10} {:>10} {:>10} {:>7} {:>10} {:>7}\n", "L", "W", "heads", "ms/step",
             "GFLOP/s", "768^3", "ratio", "eager ms", "ratio");
  for (const int64_t modules : {1, 8})
    for (const int64_t heads : {1, 8, 64}) {
      const TrialSpec t = trial(1, modules, heads);
      const auto stack = stack_of({t}, {.device = "cpu", .threads = threads});
      EagerStep eager(t);
      verify(t, *stack, eager);
      const double before = product_rate();
      const double seconds = step_seconds(*stack, 1, 7, 3);
      const double rate = std::max(before, product_rate());
      const double plain = step_seconds(3, 1, [&](int64_t count) {
        for (int64_t i = 0; i < count; ++i) eager.step();
      });
      const double flops = training_flops(t) / static_cast<double>(t.protocol.steps);
      fmt::print("{:>3} {:>3} {:>6} {:>10.1f} {:>10.1f} {:>10.1f} {:>7.2f} {:>10.1f} {:>7.2f}\n", 1, modules,
                 heads, 1e3 * seconds, flops / seconds / 1e9, rate / 1e9, flops / seconds / rate, 1e3 * plain,
                 flops / plain / rate);
      std::fflush(stdout);
    }
}

struct Case {
  int64_t layers, modules, heads, stack;
  double batched = 0;  // ms, PyTorch 2.11, heads batched, 5 seeds stacked, SDPA, CUDA graph, TF32 (measured
                       // on an H200); 0: not measured
};

void on_cuda(const std::string& device, const std::vector<Case>& cases, const std::vector<bool>& precisions,
             bool timed) {
  fmt::print("{:>3} {:>3} {:>6} {:>6} {:>5} {:>12} {:>9} {:>10} {:>7}\n", "L", "W", "heads", "stack", "tf32",
             "ms/step/trial", "TFLOP/s", "batched ms", "ratio");
  for (const Case& c : cases)
    for (const bool tf32 : precisions) {
      std::vector<TrialSpec> trials;
      for (int64_t i = 0; i < c.stack; ++i)
        trials.push_back(trial(c.layers, c.modules, c.heads, static_cast<uint64_t>(i)));
      const auto stack = stack_of(trials, {.device = device, .threads = 1, .tf32 = tf32});
      if (!timed) {
        std::vector<double> losses(trials.size());
        stack->advance(1, losses);
        continue;
      }
      const double seconds =
          step_seconds(*stack, trials.size(), 5, c.modules == 64 ? 10 : 40) / static_cast<double>(c.stack);
      const double flops =
          training_flops(trials.front()) / static_cast<double>(trials.front().protocol.steps);
      fmt::print("{:>3} {:>3} {:>6} {:>6} {:>5} {:>12.3f} {:>9.1f} {:>10.2f} {:>7.2f}\n", c.layers, c.modules,
                 c.heads, c.stack, tf32, 1e3 * seconds, flops / seconds / 1e12, c.batched,
                 c.batched / (1e3 * seconds));
      std::fflush(stdout);
    }
}

Case parse_case(const std::string& word) {
  Case c{};
  if (std::sscanf(word.c_str(), "%ld,%ld,%ld,%ld", &c.layers, &c.modules, &c.heads, &c.stack) != 4)
    throw usage_error(fmt::format("\"{}\" is not layers,width,heads,stack", printable(word)))
        .hint("1,1,8,21");
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() >= 2 && words[0] == "--device") {
      std::vector<Case> cases;
      bool timed = true;
      for (size_t i = 2; i < words.size(); ++i)
        if (words[i] == "--one-step")
          timed = false;
        else
          cases.push_back(parse_case(words[i]));
      if (!cases.empty())
        on_cuda(words[1], cases, {true}, timed);
      else
        on_cuda(words[1],
                {{1, 1, 8, 5, 0.41},
                 {1, 1, 8, 21, 0.41},
                 {3, 8, 8, 5, 4.7},
                 {5, 64, 1, 5, 13.4},
                 {5, 64, 8, 5, 54},
                 {5, 64, 64, 5, 80}},
                {true, false}, true);
    } else {
      on_cpu(2);
    }
  } catch (const Error& e) {
    fmt::print(stderr, "{}", e.render());
    return 1;
  }
}
