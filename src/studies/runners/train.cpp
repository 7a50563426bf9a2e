// Trains a small Transformer, or one attention layer, on a task: the runner behind most studies.
#include <cmath>

#include "base/error.h"
#include "parts/parameters.h"
#include "studies/runner.h"
#include "studies/support/train_config.h"
#include "tensors/torch_compat.h"
#include "train/diagnose.h"
#include "train/export.h"
#include "train/precision.h"
#include "train/trainer.h"

namespace rankscope {
namespace {

void check_train(const Config& config) { check(trial_of(config)); }
double train_flops(const Config& config) { return training_flops(trial_of(config)); }
std::string key(const Config& config) { return stack_key(trial_of(config)); }
int64_t limit(const Config& config, const std::string& device) {
  return stack_limit(trial_of(config), device);
}

Outcome train_outcome(const TrialSpec& spec, const TrainOutcome& o, const Precision& precision) {
  Outcome out{.failed = o.failed, .reason = o.reason, .values = {}, .precision = o.precision};
  const Record& r = o.record;
  auto& v = out.values;
  v["steps_done"] = static_cast<double>(o.step);
  v["seconds"] = r.seconds;
  v["flops"] = training_flops(spec) * static_cast<double>(o.step) / static_cast<double>(spec.protocol.steps);
  v["parameters"] = static_cast<double>(parameter_count(spec.network));
  if (std::isfinite(precision.rounding)) v["tf32_rounding"] = precision.rounding;
  if (r.windows > 0) {
    v["final_loss"] = r.last_loss;
    v["best_loss"] = r.best_loss;
  }
  if (o.failed) return out;
  v["test_mse"] = r.test;
  v["test_mse_stderr"] = r.test_stderr;
  v["best_test_mse"] = r.best_test;
  v["best_test_step"] = r.best_test_step;
  v["start_mse"] = r.start_test;
  const Alignment a = alignment(spec.network, o.parameters);
  v["angle"] = a.angle;
  v["qk_scale"] = a.scale;
  v["temperature"] = a.temperature;
  v["qk_effective_rank"] = a.effective_rank;
  if (std::isfinite(a.ov_least)) v["ov_least"] = a.ov_least;
  if (std::isfinite(a.ov_most)) v["ov_most"] = a.ov_most;
  if (std::isfinite(a.answer_gain)) v["answer_gain"] = a.answer_gain;
  for (const auto& [name, value] : limits_of(spec)) v[name] = value;
  return out;
}

std::vector<std::string> train_results() {
  std::vector<std::string> out = limit_names();  // of limits_of
  out.insert(out.end(),
             {"test_mse", "test_mse_stderr", "best_test_mse", "best_test_step", "start_mse", "final_loss",
              "best_loss", "steps_done", "seconds", "flops", "parameters", "angle", "qk_scale",
              "qk_effective_rank", "temperature", "tf32_rounding", "ov_least", "ov_most", "answer_gain"});
  return out;
}

// The part of a stack that trains now.
struct Part {
  std::span<const TrialJob> jobs;
  size_t first;  // its place in the whole stack
};

// `done` counts the steps of the parts before this one, and then of this one too.
void run_stack(const Part& part, const RunContext& context, int64_t& done) {
  std::vector<TrainJob> work;
  for (const TrialJob& job : part.jobs) work.push_back({trial_of(job.config), job.folder});
  // Asked of the first trial: the others have its shapes.
  const Precision precision = precision_for(context.precision, work.front().spec, context.device);
  TrainOptions options{.stack = {context.device, context.threads, precision.tf32},
                       .checkpoint_seconds = context.checkpoint_seconds,
                       .stop = context.stop};
  const double step_flops =
      training_flops(work.front().spec) / static_cast<double>(work.front().spec.protocol.steps);
  const int64_t steps_each = work.front().spec.protocol.steps;
  const int64_t done_before = done;
  options.progress = [&](int64_t steps, int64_t resumed, double loss) {
    done = done_before + steps;
    if (context.progress)
      context.progress({.steps_done = done,
                        .steps_total = done_before + steps_each * static_cast<int64_t>(work.size()) - resumed,
                        .flops_done = step_flops * static_cast<double>(done),
                        .what = fmt::format("loss {:.4g}{}", loss, precision.tf32 ? ", tf32" : "")});
  };
  options.finished = [&](size_t job, const TrainOutcome& o) {
    context.finished(part.first + job, train_outcome(work[job].spec, o, precision));
  };
  train(work, options);
}

// A stack that does not fit splits itself.
void run_part(const Part& part, const RunContext& context, int64_t& done) {
  try {
    run_stack(part, context, done);
  } catch (const c10::OutOfMemoryError&) {
    if (part.jobs.size() == 1) throw Error("one trial alone does not fit in the memory of the device");
    const size_t half = part.jobs.size() / 2;
    run_part({part.jobs.first(half), part.first}, context, done);
    run_part({part.jobs.subspan(half), part.first + half}, context, done);
  }
}

void run_train(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  int64_t done = 0;
  run_part({jobs, 0}, context, done);
}

void export_train(const TrialJob& job, const std::filesystem::path& folder) {
  const TrialSpec spec = trial_of(job.config);
  const TaskSpec& k = spec.task;
  TrainedModel(spec, load_weights(job.folder / "model.safetensors", spec.network))
      .write(fmt::format("task={} data={} d={} n={}", k.name, k.data, k.d, k.n), folder);
}

}  // namespace

extern const Runner runner_train{.name = "train",
                                 .summary = "trains a small Transformer or one attention layer on a task",
                                 .keys = train_keys(),
                                 .results = train_results(),
                                 .check = check_train,
                                 .flops = train_flops,
                                 .stack_key = key,
                                 .stack_limit = limit,
                                 .run = run_train,
                                 .export_model = export_train,
                                 .cuda = true};

}  // namespace rankscope
