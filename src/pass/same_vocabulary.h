// Whether two checkpoints mean the same by a token id.
#pragma once

#include <filesystem>
#include <vector>

#include "model/batch.h"

namespace rankscope {

/// Refuses a baseline whose tokenizer spells an id of the samples differently: it would read another text. A
/// folder without a tokenizer says nothing, and is taken at its word.
void require_same_vocabulary(const std::filesystem::path& model, const std::filesystem::path& baseline,
                             const std::vector<Sample>& samples);

}  // namespace rankscope
