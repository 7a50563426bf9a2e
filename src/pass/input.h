// The samples of a scan: from text, token ids, images or a generator, cut and counted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"
#include "pass/request.h"

namespace rankscope {

struct ScanInput {
  std::vector<Sample> samples;                   // of the stream that ends in the output
  std::vector<Sample> encoder = {};              // of the one it reads, where there is one
  std::vector<std::string> encoder_tokens = {};  // as `sample_tokens`, of that one
  std::string description;                       // "text FILE, 32 samples"
  std::vector<std::string> notes;                // what was cut
  std::vector<std::string> sample_tokens;        // the first sample's tokens, as the vocabulary spells them
  std::vector<std::filesystem::path> tokenizer;  // the files behind the ids, empty where none was used
  std::optional<int64_t> mask = {};              // the token that stands for a hidden word, where one does
  int64_t unread = 0;  // samples that the file has beyond request.samples; of a text about so many
};

/// How the note on samples that repeat an earlier one ends.
inline constexpr std::string_view kRepeatsCount = "errors count them as independent";

/// What a note on samples that were cut adds where `limit` is the model's and not the request's.
std::string made_for(const ScanRequest& request, int64_t limit);

ScanInput read_input(const ScanRequest& request, const ModelSpec& spec);

/// `input_features` [sounds, mel bins, frames] of a safetensors file, one sample a sound.
std::vector<Sample> read_features(const std::filesystem::path& path, int64_t most);

/// `pixel_values` of a safetensors file, one sample an image.
std::vector<Sample> read_pixels(const std::filesystem::path& path, int64_t most);

/// The same samples with their tokens in another order; special tokens keep their places. The null model that
/// asks what order alone is worth.
std::vector<Sample> shuffled(std::vector<Sample> samples, uint64_t seed);

}  // namespace rankscope
