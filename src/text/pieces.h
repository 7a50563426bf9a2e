// The stages of a tokenizer: text -> normalized text -> pieces -> ids -> one sequence with special tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace rankscope::text {

/// A part of the text on its way to the model.
struct Piece {
  std::string text;
  /// Whether its first character stands for the first one of the original text. Metaspace with the scheme
  /// "first" asks; a normalizer that drops the head of the text makes it false.
  bool at_start = true;
  int64_t id = -1;  // an added token found in the text: nothing more happens to it
  bool special = false;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Piece& piece) const = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Appends the parts of `piece`. Empty parts may be given: they are dropped by the caller.
  virtual void split(Piece piece, std::vector<Piece>& out) const = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual void encode(std::string_view word, std::vector<int64_t>& ids) const = 0;
  virtual std::optional<int64_t> id(std::string_view token) const = 0;
  virtual std::string token(int64_t id) const = 0;
  virtual int64_t size() const = 0;
  virtual std::string kind() const = 0;
};

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  /// `pair` is null for a single text. `types` hold 0 for the text and 1 for the pair on entry.
  virtual Encoding process(Encoding text, const Encoding* pair, bool add_special_tokens) const = 0;
};

// Each reads the object of its stage and refuses by name what it does not know. `place` is for errors.
std::unique_ptr<Normalizer> read_normalizer(const Json& value, const std::string& place);
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& value, const std::string& place);
std::unique_ptr<Model> read_model(const Json& value, const std::string& place);
std::unique_ptr<PostProcessor> read_post_processor(const Json& value, const std::string& place);

/// "a tokenizer with the normalizer "X" is not supported" with the list of those that are.
[[noreturn]] void refuse(std::string_view stage, const std::string& name,
                         const std::vector<std::string>& known, const std::string& place);

/// The members of "normalizers", "pretokenizers" or "processors" of a Sequence.
const Json& sequence_members(const JsonObject& object, const char* key);

/// Throws when a stage makes the text too long: a file may chain replacements that grow it without end.
void check_length(size_t bytes);

}  // namespace rankscope::text
