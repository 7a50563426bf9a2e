#include "studies/support/shared_training.h"

#include <cmath>

namespace rankscope {
namespace {

constexpr double kTraining = 3;  // backward costs two forward passes
constexpr const char* kPrecision = "fp32";

}  // namespace

Config without_view(Config config, const std::vector<Key>& keys, const std::vector<std::string>& view) {
  for (const std::string& key : view) config[key] = find_key(keys, key, "").otherwise;
  return config;
}

std::filesystem::path shared_folder(const TrialJob& job, std::string_view runner, const Config& config) {
  return job.folder.parent_path() / trial_id(runner, config);
}

std::optional<TokenTrained> train_shared(const TokenTraining& training, const TokenSet& set,
                                         const std::filesystem::path& folder, const RunContext& context) {
  const int64_t steps = training_steps(training, set.sequences());
  const double step_flops =
      training_flops(training, set.sequences(), set.tokens) / static_cast<double>(steps);
  TokenTrainOptions options{
      .folder = folder, .checkpoint_seconds = context.checkpoint_seconds, .stop = context.stop};
  RunProgress progress;
  options.progress = [&](int64_t step, double loss) {
    if (!context.progress) return;
    ++progress.steps_done;
    progress.steps_total = steps - step + progress.steps_done;
    progress.flops_done = step_flops * static_cast<double>(progress.steps_done);
    progress.what = fmt::format("loss {:.4g}", loss);
    context.progress(progress);
  };
  return train_tokens(training, set, options);
}

double training_flops(const TokenTraining& t, int64_t sequences, int64_t tokens) {
  return kTraining * static_cast<double>(t.recipe.epochs * sequences) * forward_flops(t.network, tokens);
}

void describe(const TokenTrained& trained, Outcome& outcome) {
  outcome.precision = kPrecision;
  outcome.values["steps_done"] = static_cast<double>(trained.steps);
  outcome.values["final_loss"] = trained.loss;
  outcome.values["seconds"] = trained.seconds;
  outcome.values["parameters"] = static_cast<double>(trained.parameters.size());
}

void fail_all(std::span<const TrialJob> jobs, const RunContext& context, const TokenTrained& trained) {
  for (size_t i = 0; i < jobs.size(); ++i)
    context.finished(i, {true,
                         fmt::format("diverged at step {}: the training loss is not finite", trained.steps),
                         {},
                         kPrecision});
}

at::Tensor in_double(const TokenTrained& trained) {
  return at::tensor(at::ArrayRef<float>(trained.parameters.data(), trained.parameters.size()), at::kFloat)
      .to(at::kDouble);
}

}  // namespace rankscope
