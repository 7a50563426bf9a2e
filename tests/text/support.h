// Short ways to ask one stage of a tokenizer one question.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/load.h"
#include "text/pieces.h"

namespace rankscope::test {

using Words = std::vector<std::string>;
using Ids = std::vector<int64_t>;

inline std::string normalized(const Json& normalizer, const std::string& input) {
  text::Piece piece{input};
  text::read_normalizer(normalizer, "tokenizer.json")->apply(piece);
  return piece.text;
}

/// The parts, empty ones left out as the tokenizer does.
inline Words parts(const Json& pre_tokenizer, const std::string& input, bool at_start = true) {
  std::vector<text::Piece> pieces;
  text::read_pre_tokenizer(pre_tokenizer, "tokenizer.json")->split({input, at_start}, pieces);
  Words out;
  for (const text::Piece& piece : pieces)
    if (!piece.text.empty()) out.push_back(piece.text);
  return out;
}

inline Ids model_ids(const Json& model, const std::string& word) {
  Ids out;
  text::read_model(model, "tokenizer.json")->encode(word, out);
  return out;
}

inline std::unique_ptr<Tokenizer> tokenizer(const Json& json) {
  return tokenizer_from_text(json.dump(), "tokenizer.json");
}

/// A vocabulary of whole words; unknown ones have the id 0.
inline Json word_level(const Words& words) {
  Json vocab{{"<unk>", 0}};
  for (const std::string& word : words) vocab[word] = vocab.size();
  return {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}};
}

inline Json split(const Json& pattern, const char* behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}
inline Json regex(const char* expression) { return {{"Regex", expression}}; }

/// What the error of `action` says, with its place and advice.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.render();
  }
  return "no error";
}

}  // namespace rankscope::test
