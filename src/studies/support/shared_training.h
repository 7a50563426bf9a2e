// Trials that look at one trained network in different ways: what they look at is a key like any other, an
// axis of the figure and a column of published tables, and the training is done once. It is kept in the
// folder of the trial whose viewing keys have their defaults, whether that trial is asked for or not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "studies/runner.h"
#include "train/trainer.h"

namespace rankscope {

/// The configuration with the keys of `view` at their defaults: equal for trials that share a training.
Config without_view(Config config, const std::vector<Key>& keys, const std::vector<std::string>& view);

/// Where that trial keeps its network: beside the folder of `job`.
std::filesystem::path shared_folder(const TrialJob& job, std::string_view runner, const Config& without_view);

/// Trains, or reads what is there, telling `context` how far it is. Nothing when stopped.
///
/// `text`, where the set was read from one, is a file that may change behind the configuration that names it:
/// what was read is kept beside the network as a hash, and an error where it is not the same any more.
std::optional<TrainOutcome> train_shared(const TrialSpec& training, const std::filesystem::path& folder,
                                         const RunContext& context, const std::string& text = {});

/// Writes the network trained in `from` as a folder that `scan` reads, an error where there is none; `task`
/// and `words` are what TrainedModel (train/export.h) wants to know, `text` as above.
void export_shared(const TrialSpec& training, const std::filesystem::path& from, const std::string& task,
                   const TokenSet* words, const std::filesystem::path& folder, const std::string& text = {});

/// What every trial says about its training.
void describe(const TrainOutcome& trained, Outcome& outcome);

/// `own` and the names of what `describe` says: for the `results` of a runner.
std::vector<std::string> described_and(std::vector<std::string> own);

/// All trials of the stack fail with the same words.
void fail_all(std::span<const TrialJob> jobs, const RunContext& context, const TrainOutcome& trained);

}  // namespace rankscope
