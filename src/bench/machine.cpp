#include "bench/machine.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/error.h"
#include "base/stats.h"
#include "bench/graph.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

double now(const Machine& machine) {
  if (machine.processor_time) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double round_of(const Machine& machine, const std::function<void()>& work, int64_t calls) {
  finish(machine.device);
  const double start = now(machine);
  for (int64_t i = 0; i < calls; ++i) work();
  finish(machine.device);
  return (now(machine) - start) / static_cast<double>(calls);
}

// The shortest of a few calls: a rate is what the machine can do, not what it does on average.
double shortest(const Machine& machine, const std::function<void()>& work) {
  double best = round_of(machine, work, 2);
  for (int i = 0; i < (machine.quick ? 4 : 12); ++i) best = std::min(best, round_of(machine, work, 1));
  return best;
}

}  // namespace

void use_machine(Machine& machine) {
  device_of(machine.device);  // refuses what is not there
  if (machine.cuda() && machine.processor_time)
    throw usage_error("processor time says nothing about a GPU")
        .hint("--device cpu, or without --processor-time");
  use_threads(machine.threads);
  machine.threads = thread_count();
  at::globalContext().setFloat32MatmulPrecision(machine.cuda() && machine.tf32 ? "high" : "highest");
}

void measure_rates(Machine& machine) {
  const c10::NoGradGuard no_gradients;
  const auto options = at::TensorOptions().device(device_of(machine.device));
  const int64_t n = machine.cuda() ? 8192 : 768;  // the CPU's unit of the studies; a GPU needs more to fill
  const int64_t floats = machine.cuda() ? int64_t{1} << 28 : int64_t{1} << 24;  // beyond every cache
  {
    const at::Tensor a = at::randn({n, n}, options), b = at::randn({n, n}, options);
    at::Tensor c = at::empty({n, n}, options);
    const double seconds = shortest(machine, [&] { at::mm_out(c, a, b); });
    const double size = static_cast<double>(n);
    machine.matrix_rate = std::max(machine.matrix_rate, 2 * size * size * size / seconds);
  }
  const at::Tensor from = at::ones({floats}, options);
  at::Tensor to = at::empty({floats}, options);
  const double seconds = shortest(machine, [&] { to.copy_(from); });
  machine.copy_rate = std::max(machine.copy_rate, 2 * 4 * static_cast<double>(floats) / seconds);
}

double seconds_of(const Machine& machine, const std::function<void()>& work) {
  const double round = machine.quick ? 0.02 : 0.25;
  work();  // libraries set themselves up on first use
  const double once = round_of(machine, work, 1);
  const auto calls = static_cast<int64_t>(std::clamp(round / once, 1.0, 1000.0));
  std::vector<double> rounds;
  for (int i = 0; i < (machine.quick ? 3 : 5); ++i) rounds.push_back(round_of(machine, work, calls));
  return median(rounds);
}

Limit limit_of(const Machine& machine, double flops, double bytes) {
  const double arithmetic = flops / machine.matrix_rate, traffic = bytes / machine.copy_rate;
  return {std::max(arithmetic, traffic), traffic > arithmetic};
}

}  // namespace rankscope
