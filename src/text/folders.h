// Older folders have no tokenizer.json; what they mean is put into its words.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace rankscope::text {

/// vocab.txt of BERT and its relatives.
Json from_vocab_txt(const std::filesystem::path& folder);

/// vocab.json and merges.txt of GPT-2 and RoBERTa.
Json from_vocab_and_merges(const std::filesystem::path& folder);

}  // namespace rankscope::text
