// A runner with nothing to learn: each step adds a random number that depends on the configuration and the
// step, so the sum at the end says whether a trial that was killed went on where it was.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/philox.h"
#include "studies/runner.h"

namespace rankscope::test {

inline double fake_step(const Config& config, int64_t step) {
  const Philox random{static_cast<uint64_t>(integer(config, "seed")),
                      static_cast<uint32_t>(integer(config, "rank")), static_cast<uint32_t>(step)};
  return random.normal(0);
}

inline double fake_sum(const Config& config) {
  double sum = 0;
  for (int64_t step = 0; step < integer(config, "steps"); ++step) sum += fake_step(config, step);
  return sum;
}

inline void fake_check(const Config& config) {
  if (integer(config, "d") % integer(config, "rank") != 0)
    throw Error(fmt::format("the rank {} does not divide the width {}", integer(config, "rank"),
                            integer(config, "d")))
        .hint("a rank that divides it");
}

// Says in the log of the sweep that it starts, so that a test can tell whether a trial ran again.
inline void fake_log(const TrialJob& job) {
  std::ofstream(job.folder.parent_path() / "starts.log", std::ios::app) << job.id + "\n" << std::flush;
}

inline void fake_run(std::span<const TrialJob> jobs, const RunContext& context) {
  RunProgress progress;
  for (const TrialJob& job : jobs) progress.steps_total += integer(job.config, "steps");
  for (size_t j = 0; j < jobs.size(); ++j) {
    const Config& config = jobs[j].config;
    fake_log(jobs[j]);
    if (text(config, "fault") == "throw") throw Error("the runner fell over").in("fake");
    if (text(config, "fault") == "diverge") {
      context.finished(j, {true, "diverged at step 3: the loss is not finite", {}});
      continue;
    }
    double sum = 0;
    int64_t step = 0;
    const auto checkpoint = jobs[j].folder / "checkpoint";
    if (std::ifstream file(checkpoint); file) file >> step >> sum;
    for (; step < integer(config, "steps"); ++step) {
      if (context.stop->load()) return write_file(checkpoint, fmt::format("{} {:.17g}", step, sum));
      if (step % 4 == 3) write_file(checkpoint, fmt::format("{} {:.17g}", step, sum));
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(number(config, "pause")));
      sum += fake_step(config, step);
      ++progress.steps_done;
      progress.flops_done += 1e6;
      if (context.progress) context.progress(progress);
    }
    write_file(jobs[j].folder / "curve.jsonl", "{\"step\":0,\"loss\":1.0}\n{\"step\":1,\"loss\":0.5}\n");
    context.finished(j, {false, "", {{"test_mse", sum}, {"test_mse_stderr", 0.001}}});
  }
}

inline const Runner& fake_runner() {
  static const Runner runner{
      .name = "fake",
      .summary = "adds random numbers",
      .keys =
          {{.name = "d", .otherwise = int64_t{16}, .help = "width", .low = 1, .high = 1024},
           {.name = "rank", .otherwise = int64_t{1}, .help = "rank", .low = 1, .high = 1024},
           {.name = "heads", .otherwise = int64_t{1}, .help = "heads", .low = 1, .high = 1024},
           {.name = "lr", .otherwise = 0.01, .help = "learning rate", .low = 0, .high = 10},
           {.name = "norm", .otherwise = std::string("unit"), .help = "norm", .choices = {"none", "unit"}},
           {.name = "fault", .otherwise = std::string("none"), .help = "how it fails"},
           {.name = "bias", .otherwise = true, .help = "biases"},
           {.name = "steps", .otherwise = int64_t{5}, .help = "steps", .low = 1},
           {.name = "pause", .otherwise = 0.0, .help = "milliseconds a step", .low = 0},
           {.name = "seed", .otherwise = int64_t{0}, .help = "seed", .low = 0}},
      .check = fake_check,
      .flops = [](const Config& c) { return 1e6 * number(c, "steps") * number(c, "d"); },
      .stack_key = [](const Config& c) { return fmt::format("{} {}", integer(c, "d"), text(c, "fault")); },
      .stack_limit = [](const Config&, const std::string& device) -> int64_t {
        if (device != "cpu") throw Error(fmt::format("there is no device {}", device)).hint("--device cpu");
        return 4;
      },
      .run = fake_run};
  return runner;
}

}  // namespace rankscope::test
