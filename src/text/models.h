// One reader per model; read_model picks by the name.
#pragma once

#include "text/pieces.h"
#include "text/vocabulary.h"

namespace rankscope::text {

std::unique_ptr<Model> read_wordpiece(const JsonObject& object);
std::unique_ptr<Model> read_bpe(const JsonObject& object);
std::unique_ptr<Model> read_unigram(const JsonObject& object);
std::unique_ptr<Model> read_wordlevel(const JsonObject& object);

/// What every model with a table of tokens answers the same way.
class VocabularyModel : public Model {
 public:
  explicit VocabularyModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  std::optional<int64_t> id(std::string_view token) const override { return vocabulary_.id(token); }
  std::string token(int64_t id) const override { return vocabulary_.token(id); }
  int64_t size() const override { return vocabulary_.size(); }

 protected:
  /// The id of the token for unknown words; throws if the vocabulary has none.
  int64_t unknown_id(const std::string& token, std::string_view word) const;

  Vocabulary vocabulary_;
};

/// "<0x0A>": how byte_fallback spells a byte.
std::string byte_token(char byte);

}  // namespace rankscope::text
