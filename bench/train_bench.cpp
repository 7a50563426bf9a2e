// Training steps of one's own choice, ours alone, with what `rankscope bench` measures with: for tuning a
// kernel and for a profiler.
//
//   train_bench [--device cuda] [--fp32] [--one-step] [L,W,H,S ...]
//
// L layers, W modules, H heads, a stack of S; the six CPU cases, or the study's five on CUDA, when left out.
// --one-step takes one step without timing it.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/machine.h"
#include "bench/training_case.h"
#include "tensors/torch_compat.h"

using namespace rankscope;

namespace {

StepShape parse_shape(const std::string& word) {
  StepShape s;
  if (std::sscanf(word.c_str(), "%ld,%ld,%ld,%ld", &s.layers, &s.modules, &s.heads, &s.stack) != 4)
    throw usage_error(fmt::format("\"{}\" is not layers,width,heads,stack", printable(word)))
        .hint("1,1,8,21");
  return s;
}

void take_one_step(const Machine& machine, const StepShape& shape) {
  const auto trials = trials_of(shape);
  std::vector<double> losses(trials.size());
  fresh_stack(trials, machine)->advance(1, losses);
}

void print_time(Machine& machine, const StepShape& shape) {
  const auto trials = trials_of(shape);
  measure_rates(machine);
  const double seconds = our_step(machine, trials) / static_cast<double>(shape.stack);
  measure_rates(machine);
  const double rate = step_flops(trials.front()) / seconds;
  fmt::print("{:<22} {:>10.3f} {:>10.1f} {:>10.1f} {:>7.2f}\n", name_of(shape), 1e3 * seconds, rate / 1e9,
             machine.matrix_rate / 1e9, rate / machine.matrix_rate);
  std::fflush(stdout);
}

void run(const std::vector<std::string>& words) {
  Machine machine{.threads = 2};
  bool timed = true;
  std::vector<StepShape> shapes;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--device" && i + 1 < words.size())
      machine.device = words[++i];
    else if (words[i] == "--fp32")
      machine.tf32 = false;
    else if (words[i] == "--one-step")
      timed = false;
    else
      shapes.push_back(parse_shape(words[i]));
  }
  if (shapes.empty()) shapes = study_shapes(machine);
  use_machine(machine);
  if (timed)
    fmt::print("{:<22} {:>10} {:>10} {:>10} {:>7}\n", "case", "ms/step", "GFLOP/s", "product", "ratio");
  for (const StepShape& shape : shapes) timed ? print_time(machine, shape) : take_one_step(machine, shape);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
  } catch (const Error& e) {
    fmt::print(stderr, "{}", e.render());
    return 1;
  }
}
