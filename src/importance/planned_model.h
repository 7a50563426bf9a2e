// The network that a plan leaves, as a Hugging Face folder of the same architecture.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "importance/evaluator.h"
#include "parts/program.h"

namespace rankscope {

/// Whether queries, keys, values and outputs of a layer are plain maps, nothing between them and attention
/// but norms: others have no QK and OV map to cut.
bool has_plain_maps(const Program& program);

/// What of a layer can go in a folder of the same architecture: single heads ("head"), and ranks of its maps
/// ("qk", "ov", "kv"). Cuts that would need keys or values of their own for heads that share them, or biases
/// the architecture has no place for, cannot be written.
bool can_write(const Checkpoint& checkpoint, int64_t layer, const std::string& map);

/// What goes with the checkpoint's weights (side_files.h), and model.safetensors with the blocks edited:
/// heads that are off have zeros where they write, query, gate and, where nobody reads them any more, as keys
/// and values. Changed tensors are stored in float32 where they were narrower. activations.safetensors beside
/// it is what the edited network computes on the samples, for `rankscope verify`. Every file is there whole
/// or not at all, config.json last; what a killed run left in the folder goes first (unfinished.h).
void write_planned_model(const Checkpoint& checkpoint, WeightSource& source,
                         const std::map<int64_t, BlockEdit>& edits, const std::vector<Sample>& samples,
                         const std::filesystem::path& folder);

}  // namespace rankscope
