// study run --dry-run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <thread>

#include "base/error.h"
#include "base/progress.h"
#include "cli/study.h"
#include "report/text.h"
#include "sweep/tables.h"

namespace rankscope {
namespace {

struct Rate {
  double flops_per_second;
  std::string origin;
};

// What finished trials of this store took on this device; before there is one, a cautious guess.
Rate rate_for(const StudyOptions& o, const Runner& runner, const std::vector<StoredTrial>& known) {
  double flops = 0, seconds = 0;
  std::vector<TrialJob> done;
  for (const StoredTrial& trial : known) {
    if (trial.state != TrialState::done || trial.device != o.device || trial.seconds <= 0) continue;
    done.push_back({trial.id, parse_canonical(trial.config, runner.keys), {}});
    seconds += trial.seconds;
  }
  for (const TrialStack& stack : plan_stacks(runner, done, o.device)) flops += stack.flops;
  if (flops > 0) return {flops / seconds, fmt::format("measured on {} finished trials", done.size())};
  if (o.device != "cpu") return {3e13, "a guess for a large GPU, until a trial is finished"};
  const int threads = runner.one_core ? 1 : thread_count(o.threads);
  return {1.5e10 * threads, fmt::format("a guess for {} threads, until a trial is finished", threads)};
}

}  // namespace

int thread_count(int asked) {
  if (asked > 0) return asked;
  const char* beside = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const int processes = beside == nullptr ? 1 : std::max(1, std::atoi(beside));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / processes);
}

std::string rate_text(double f) {
  return f >= 1e12  ? fmt::format("{:.3g} TFLOP/s", f / 1e12)
         : f >= 1e9 ? fmt::format("{:.3g} GFLOP/s", f / 1e9)
                    : fmt::format("{:.3g} MFLOP/s", f / 1e6);
}

void print_plan(const Study& study, const Runner& runner, const std::vector<Axis>& overrides,
                const std::vector<Trial>& trials, const StudyOptions& o, Io& io) {
  std::vector<StoredTrial> known;
  if (std::filesystem::exists(std::filesystem::path(o.folder) / "study.db"))
    known = Store::look_at(o.folder).trials();
  std::map<std::string, TrialState> states;
  for (const StoredTrial& trial : known) states[trial.id] = trial.state;

  std::vector<TrialJob> jobs;
  std::vector<Point> points;
  for (const Trial& trial : trials) {
    points.push_back({trial.config, {}});
    const auto state = states.find(trial.id);
    if (state == states.end() || state->second != TrialState::done)
      jobs.push_back({trial.id, trial.config, {}});
  }
  const std::vector<TrialStack> stacks = plan_stacks(runner, jobs, o.device);
  struct Share {
    size_t stack;
    double flops;  // an equal part of its stack's
  };
  std::map<std::string, Share> shares;
  double work = 0;
  for (size_t s = 0; s < stacks.size(); ++s) {
    const TrialStack& stack = stacks[s];
    work += stack.flops;
    for (const TrialJob& job : stack.jobs)
      shares[job.id] = {s + 1, stack.flops / static_cast<double>(stack.jobs.size())};
  }
  io.out << fmt::format("{}: {}\n{}\n\n", study.name, terminal_text(study.title),
                        spec_text(study, overrides));
  const std::vector<std::string> keys = varying(points);
  io.out << fmt::format("{:<18}{:>5}  {:<10}{}\n", "trial", "stack", "FLOP", "point");
  for (const Trial& trial : trials) {
    std::vector<std::string> words;
    for (const std::string& key : keys)
      words.push_back(
          fmt::format("{}={}", key, to_text(value_or_default(trial.config, runner.keys, key, study.place))));
    const auto share = shares.find(trial.id);
    const std::string cost = share == shares.end()
                                 ? fmt::format("{:>5}  {:<10}", "done", "")
                                 : fmt::format("{:>5}  {:<10.3g}", share->second.stack, share->second.flops);
    io.out << fmt::format("{:<18}{}{}\n", trial.id, cost, fmt::join(words, " "));
  }
  const Rate rate = rate_for(o, runner, known);
  io.out << fmt::format("\n{} trials in {} stacks, {:.3g} FLOP, about {} at {} ({})\n", jobs.size(),
                        stacks.size(), work, duration_text(work / rate.flops_per_second),
                        rate_text(rate.flops_per_second), rate.origin);
}

}  // namespace rankscope
