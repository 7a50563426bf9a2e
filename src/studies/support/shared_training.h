// Trials that look at one trained network in different ways: what they look at is a key like any other, an
// axis of the figure and a column of published tables, and the training is done once. It is kept in the
// folder of the trial whose viewing keys have their defaults, whether that trial is asked for or not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "studies/runner.h"
#include "train/token_trainer.h"

namespace rankscope {

/// The configuration with the keys of `view` at their defaults: equal for trials that share a training.
Config without_view(Config config, const std::vector<Key>& keys, const std::vector<std::string>& view);

/// Where that trial keeps its network: beside the folder of `job`.
std::filesystem::path shared_folder(const TrialJob& job, std::string_view runner, const Config& without_view);

/// Trains, or reads what is there, telling `context` how far it is. Nothing when stopped.
std::optional<TokenTrained> train_shared(const TokenTraining& training, const TokenSet& set,
                                         const std::filesystem::path& folder, const RunContext& context);

/// Of the whole training.
double training_flops(const TokenTraining& training, int64_t sequences, int64_t tokens);

/// What every trial says about its training.
void describe(const TokenTrained& trained, Outcome& outcome);

/// All trials of the stack fail with the same words.
void fail_all(std::span<const TrialJob> jobs, const RunContext& context, const TokenTrained& trained);

/// The parameters as one tensor of float64.
at::Tensor in_double(const TokenTrained& trained);

}  // namespace rankscope
