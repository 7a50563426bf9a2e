// Which tokens a language model is asked for: each next one of a causal model, or those that were hidden from
// a masked one. Knows nothing of torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "model/batch.h"

namespace rankscope {

class Tokenizer;

/// none: no head over the words, or one that answers another question.
enum class LossKind { none, next_token, masked };
LossKind loss_kind(const ModelSpec& spec);

/// The metric that carries the loss: "nll" or "pseudo_nll".
const char* loss_metric(LossKind kind);

/// By sample: at which of its places the network answers, and which token is right there.
struct Answers {
  std::vector<std::vector<int64_t>> places, ids;
};

/// The same for a packed batch: rows of it, and where those of each sample begin.
struct AnswerRows {
  std::vector<int64_t> rows, ids;
  std::vector<int64_t> offsets;  // [S + 1]
};
AnswerRows rows_of(const Batch& batch, const Answers& answers);

/// Samples as the network reads them, and what it should answer.
struct Questions {
  LossKind kind = LossKind::none;
  std::vector<Sample> samples;
  Answers answers;
};

/// Causal: every token but the first is asked for. Masked: 15 % of the content tokens of a sample, one at
/// least, chosen by the seed, are replaced by the mask token and asked for; without a mask token nothing is.
Questions questions_for(const ModelSpec& spec, const std::vector<Sample>& samples,
                        std::optional<int64_t> mask, uint64_t seed);

/// Leaves out the samples of which nothing is asked, and their numbers: what a network answers them costs no
/// loss. Where nothing is asked of any (no loss, single tokens) all stay. Says how many went.
size_t keep_asked(Questions& questions, std::vector<int64_t>& numbers);
void note_unasked(size_t samples, std::vector<std::string>& notes);

constexpr double kHiddenShare = 0.15;

/// The token that the folder's tokenizer hides words behind: what its tokenizer_config.json or
/// special_tokens_map.json says, else [MASK] or <mask>.
std::optional<int64_t> mask_token(const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace rankscope
