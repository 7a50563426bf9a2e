#include "text/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

constexpr size_t kMostTokens = 1 << 20;

size_t character_before(std::string_view text, size_t at) {
  do --at;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool word_at(std::string_view text, size_t at) { return is_word(next_character(text, at)); }

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && word_at(text, character_before(text, begin))) return false;
  return end == text.size() || !word_at(text, end);
}

size_t skip_space_left(std::string_view text, size_t at) {
  while (at > 0) {
    const size_t before = character_before(text, at);
    size_t i = before;
    if (!is_whitespace(next_character(text, i))) break;
    at = before;
  }
  return at;
}

size_t skip_space_right(std::string_view text, size_t at) {
  for (size_t next = at; at < text.size() && is_whitespace(next_character(text, next));) at = next;
  return at;
}

AddedToken read_token(const Json& value, const std::string& place) {
  const JsonObject object(value, place);
  AddedToken out;
  out.content = object.string("content");
  out.id = object.integer("id", 0, kLargestId);
  if (out.content.size() > kLongestToken)
    throw Error(fmt::format("an added token has {} bytes, more than the {} allowed", out.content.size(),
                            kLongestToken))
        .in(place);
  out.special = object.boolean("special", false);
  out.single_word = object.boolean("single_word", false);
  out.lstrip = object.boolean("lstrip", false);
  out.rstrip = object.boolean("rstrip", false);
  out.normalized = object.boolean("normalized", !out.special);
  return out;
}

}  // namespace

AddedTokens::AddedTokens(const Json& list, const Model& model, const Normalizer* normalizer,
                         const std::string& place)
    : normalizer_(normalizer) {
  read(list, model, place);
  std::vector<std::pair<std::string_view, int64_t>> raw, normalized;
  spellings_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].normalized) {
      raw.emplace_back(tokens_[i].content, static_cast<int64_t>(i));
      continue;
    }
    Piece piece{tokens_[i].content};
    if (normalizer_ != nullptr) normalizer_->apply(piece);
    // Of two tokens that the normalizer makes equal the first one is found (the library picks either, by
    // chance), and one of which it leaves nothing never is.
    normalized.emplace_back(spellings_.emplace_back(std::move(piece.text)), static_cast<int64_t>(i));
  }
  raw_ = ByteTrie(std::move(raw));
  normalized_ = ByteTrie(std::move(normalized));
}

void AddedTokens::read(const Json& list, const Model& model, const std::string& place) {
  if (list.is_null()) return;
  if (!list.is_array()) throw Error("\"added_tokens\" should be a list").in(place);
  if (list.size() > kMostTokens)
    throw Error(fmt::format("there are {} added tokens, more than the {} allowed", list.size(), kMostTokens))
        .in(place);
  int64_t next = model.size();  // what a token that is new to the model gets
  for (const Json& value : list) {
    AddedToken token = read_token(value, place);
    if (token.content.empty()) continue;
    if (const auto twice = by_content_.find(token.content); twice != by_content_.end()) {
      AddedToken& first = tokens_[by_id_.at(twice->second)];
      token.id = first.id;
      token.special |= first.special;
      first = std::move(token);  // listed twice: the later flags count
      continue;
    }
    // The id in the file is not asked: the library gives ids by this rule, and other ids would differ from
    // its.
    const auto known = model.id(token.content);
    token.id = known ? *known : next;
    if (token.id >= next) next = token.id + 1;
    new_ += !known;
    by_id_.emplace(token.id, tokens_.size());
    by_content_.emplace(token.content, token.id);
    tokens_.push_back(std::move(token));
  }
}

std::vector<Piece> AddedTokens::extract(std::string text) const {
  std::vector<Piece> raw, out;
  split({std::move(text)}, raw_, raw);
  for (Piece& piece : raw) {
    if (piece.id >= 0) {
      out.push_back(std::move(piece));
      continue;
    }
    if (normalizer_ != nullptr) normalizer_->apply(piece);
    split(piece, normalized_, out);
  }
  return out;
}

void AddedTokens::split(const Piece& piece, const ByteTrie& trie, std::vector<Piece>& out) const {
  const std::string_view text = piece.text;
  const auto emit = [&](size_t begin, size_t end) {
    if (begin < end)
      out.push_back({std::string(text.substr(begin, end - begin)), piece.at_start && begin == 0});
  };
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    // Leftmost, and of those that begin here the longest.
    int64_t best = -1;
    size_t end = at;
    ByteTrie::Node node = ByteTrie::kRoot;
    for (size_t i = at; i < text.size() && (node = trie.step(node, text[i])) != ByteTrie::kRoot; ++i)
      if (trie.value(node) >= 0) best = trie.value(node), end = i + 1;
    if (best < 0) {
      ++at;
      continue;
    }
    const size_t begin = at;
    at = end;  // also when it does not count: its inside is not searched again
    const AddedToken& token = tokens_[static_cast<size_t>(best)];
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    const size_t left = token.lstrip ? std::max(skip_space_left(text, begin), done) : begin;
    const size_t right = token.rstrip ? skip_space_right(text, end) : end;
    emit(done, left);
    // The white space that the token before took may hold this one too: then it counts again, as in the
    // library, unless nothing of it is left.
    if (left < right) out.push_back({std::string(), false, token.id, token.special});
    done = right;
  }
  emit(done, text.size());
}

std::optional<int64_t> AddedTokens::id(std::string_view token) const {
  const auto it = by_content_.find(token);
  return it == by_content_.end() ? std::nullopt : std::optional(it->second);
}

const AddedToken* AddedTokens::find(int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

}  // namespace rankscope::text
