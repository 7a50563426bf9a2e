#include "studies/support/shared_training.h"

#include "base/error.h"
#include "base/files.h"
#include "base/held_folder.h"
#include "train/export.h"

namespace rankscope {
namespace {

constexpr const char *kPrecision = "fp32", *kModel = "model.safetensors", *kTextHash = "text-hash";

std::string hash_of(const TokenSet& set) {
  return short_hash({reinterpret_cast<const char*>(set.ids.data()), set.ids.size() * sizeof(int64_t)}) + "\n";
}

// A network of an earlier version has no hash beside it, and is taken as it is.
void require_same_text(const TrialSpec& training, const std::filesystem::path& folder,
                       const std::string& text) {
  const std::filesystem::path kept = folder / kTextHash;
  if (!text.empty() && std::filesystem::exists(kept) && read_file(kept) != hash_of(*training.set))
    throw Error(
        "the text has changed since this network was trained on it: give the old one back, or begin in "
        "another folder with --out")
        .in("text=" + text);
}

}  // namespace

Config without_view(Config config, const std::vector<Key>& keys, const std::vector<std::string>& view) {
  for (const std::string& key : view) config[key] = find_key(keys, key, "").otherwise;
  return config;
}

std::filesystem::path shared_folder(const TrialJob& job, std::string_view runner, const Config& config) {
  return job.folder.parent_path() / trial_id(runner, config);
}

std::optional<TrainOutcome> train_shared(const TrialSpec& training, const std::filesystem::path& folder,
                                         const RunContext& context, const std::string& text) {
  require_same_text(training, folder, text);
  if (const auto done = load_finished(folder / kModel, training))
    return TrainOutcome{.record = done->record, .step = done->step, .parameters = done->parameters};
  HeldFolder(folder.parent_path()).make({folder.filename().string()});
  if (!text.empty()) write_file(folder / kTextHash, hash_of(*training.set));
  std::optional<TrainOutcome> out;
  const int64_t steps = training.protocol.steps;
  const double step_flops = training_flops(training) / static_cast<double>(steps);
  TrainOptions options{.stack = {"cpu", context.threads},
                       .checkpoint_seconds = context.checkpoint_seconds,
                       .stop = context.stop};
  options.progress = [&](int64_t done, int64_t before, double loss) {
    if (context.progress)
      context.progress({.steps_done = done,
                        .steps_total = steps - before,
                        .flops_done = step_flops * static_cast<double>(done),
                        .what = fmt::format("loss {:.4g}", loss)});
  };
  options.finished = [&](size_t, const TrainOutcome& o) { out = o; };
  train({{training, folder}}, options);
  return out;
}

void export_shared(const TrialSpec& training, const std::filesystem::path& from, const std::string& task,
                   const TokenSet* words, const std::filesystem::path& folder, const std::string& text) {
  require_same_text(training, from, text);
  const auto done = load_finished(from / kModel, training);
  if (!done) throw Error("the trial's network is not there").in(from.string()).hint("run the trial again");
  TrainedModel(training, done->parameters, words).write(task, folder);
}

void describe(const TrainOutcome& trained, Outcome& outcome) {
  outcome.precision = kPrecision;
  outcome.values["steps_done"] = static_cast<double>(trained.step);
  outcome.values["final_loss"] = trained.record.last_loss;
  outcome.values["seconds"] = trained.record.seconds;
  outcome.values["parameters"] = static_cast<double>(trained.parameters.size());
}

std::vector<std::string> described_and(std::vector<std::string> own) {
  own.insert(own.end(), {"steps_done", "final_loss", "seconds", "parameters"});
  return own;
}

void fail_all(std::span<const TrialJob> jobs, const RunContext& context, const TrainOutcome& trained) {
  for (size_t i = 0; i < jobs.size(); ++i) context.finished(i, {true, trained.reason, {}, kPrecision});
}

}  // namespace rankscope
