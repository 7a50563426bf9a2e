// Tokenizers of Hugging Face folders: text in, ids out, identical to the `tokenizers` library. Knows nothing
// of torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

struct Encoding {
  std::vector<int64_t> ids;
  std::vector<int64_t> types;  // token type ids
  std::vector<bool> special;   // added by the post-processor ([CLS], <s>, ...) or a special token
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Invalid UTF-8 is replaced by U+FFFD before anything else.
  virtual Encoding encode(std::string_view text, bool add_special_tokens = true) const = 0;
  virtual Encoding encode_pair(std::string_view text, std::string_view pair,
                               bool add_special_tokens = true) const = 0;
  virtual int64_t vocabulary_size() const = 0;  // added tokens included
  virtual std::string token(
      int64_t id) const = 0;  // the vocabulary's own spelling; "" when there is no such id
  virtual std::optional<int64_t> id(std::string_view token) const = 0;
  virtual bool is_special(int64_t id) const = 0;
  virtual std::string kind() const = 0;  // "WordPiece", "BPE", "Unigram"
};

/// Reads tokenizer.json, or vocab.txt, or vocab.json + merges.txt from the folder. An error names what is
/// missing or not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);

/// The files of the folder that define its tokenizer, for hashing.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder);

}  // namespace rankscope
