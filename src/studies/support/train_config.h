// The keys of the training runner and the trial they describe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "studies/config.h"
#include "train/protocol.h"

namespace rankscope {

std::vector<Key> train_keys();
TrialSpec trial_of(const Config& config);

/// Refuses what cannot be trained.
void check(const TrialSpec& trial);

/// What theory says about this trial, where it says anything: "lower_bound", "no_selection_floor".
std::map<std::string, double> limits_of(const TrialSpec& trial);
/// The names that they may have.
std::vector<std::string> limit_names();

}  // namespace rankscope
