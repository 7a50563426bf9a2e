// Added tokens: found in the text before (or, if "normalized", right after) the normalizer, and never cut.
#pragma once

#include <unordered_map>

#include "text/byte_trie.h"
#include "text/pieces.h"
#include "text/vocabulary.h"

namespace rankscope::text {

struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool single_word = false;             // only where no word character touches it
  bool lstrip = false, rstrip = false;  // takes the white space on that side with it
  bool normalized = false;              // looked for in the text as the normalizer leaves it
  bool special = false;
};

class AddedTokens {
 public:
  /// Reads the list "added_tokens". `normalizer` may be null.
  AddedTokens(const Json& list, const Model& model, const Normalizer* normalizer, const std::string& place);

  /// The text as pieces in order: added tokens, and what lies between them, normalized.
  std::vector<Piece> extract(std::string text) const;

  std::optional<int64_t> id(std::string_view token) const;
  const AddedToken* find(int64_t id) const;  // null when there is none
  int64_t count_new() const { return new_; }

 private:
  void read(const Json& list, const Model& model, const std::string& place);
  void split(const Piece& piece, const ByteTrie& trie, std::vector<Piece>& out) const;

  const Normalizer* normalizer_;
  std::vector<AddedToken> tokens_;
  std::unordered_map<int64_t, size_t> by_id_;
  StringMap by_content_;
  std::vector<std::string> spellings_;  // normalized contents, which the second trie looks at
  ByteTrie raw_, normalized_;           // values are places in tokens_
  int64_t new_ = 0;                     // tokens that the model does not have
};

}  // namespace rankscope::text
