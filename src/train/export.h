// A trained network as a checkpoint folder that `scan` reads.
#pragma once

#include <filesystem>
#include <vector>

#include "train/protocol.h"

namespace rankscope {

/// config.json and model.safetensors. The vocabulary is a sample of the task's tokens, already mapped to the
/// network's width, so that a text of random token ids is a batch of the task. The one-layer model becomes a
/// block without skip, norm and MLP, in which every token asks.
void export_model(const TrialSpec& trial, const std::vector<float>& parameters,
                  const std::filesystem::path& folder);

/// Rows of the exported vocabulary.
constexpr int64_t kExportedPoints = 4096;

}  // namespace rankscope
