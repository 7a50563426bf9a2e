// Byte-pair encoding: a word starts as characters, and the pair of lowest rank is merged until none is left.
#include <fmt/format.h>

#include <queue>

#include "base/error.h"
#include "text/models.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

struct Merge {
  uint32_t rank;
  int32_t id;
};
using Merges = std::unordered_map<uint64_t, Merge>;

uint64_t pair_key(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

struct BpeOptions {
  std::string prefix;  // before every character of a word but the first
  std::string suffix;  // behind the last one
  std::optional<std::string> unknown;
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};

// A word as a linked list, so that a merge costs the same anywhere in it.
class Word {
 public:
  explicit Word(const Merges& merges) : merges_(merges) {}

  void add(int64_t id) {
    const auto here = static_cast<int32_t>(symbols_.size());
    if (here > 0) symbols_.back().next = here;
    symbols_.push_back({static_cast<int32_t>(id), here - 1, -1});
  }

  void merge() {
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) offer(static_cast<int32_t>(i));
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      Symbol& left = symbols_[static_cast<size_t>(top.at)];
      if (left.id < 0 || left.next < 0) continue;
      Symbol& right = symbols_[static_cast<size_t>(left.next)];
      // Either side may have been merged since: the pair must still give the same token.
      const auto merge = merges_.find(pair_key(left.id, right.id));
      if (merge == merges_.end() || merge->second.id != top.id) continue;
      left.id = top.id;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].previous = top.at;
      if (left.previous >= 0) offer(left.previous);
      offer(top.at);
    }
  }

  void append_to(std::vector<int64_t>& ids) const {
    for (const Symbol& symbol : symbols_)
      if (symbol.id >= 0) ids.push_back(symbol.id);
  }

 private:
  struct Symbol {
    int32_t id, previous, next;
  };
  struct Candidate {
    uint32_t rank;
    int32_t at, id;
    bool operator<(const Candidate& other) const {  // the queue gives the largest first
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void offer(int32_t at) {
    const Symbol& left = symbols_[static_cast<size_t>(at)];
    if (left.next < 0) return;
    const auto merge = merges_.find(pair_key(left.id, symbols_[static_cast<size_t>(left.next)].id));
    if (merge != merges_.end()) queue_.push({merge->second.rank, at, merge->second.id});
  }

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

class Bpe : public VocabularyModel {
 public:
  Bpe(Vocabulary vocabulary, Merges merges, BpeOptions options)
      : VocabularyModel(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {}

  void encode(std::string_view text, std::vector<int64_t>& ids) const override {
    if (options_.ignore_merges)
      if (const auto whole = vocabulary_.id(text)) return ids.push_back(*whole);
    Word word(merges_);
    int64_t unknown = -1;  // found, but not yet added: the next one may be fused with it
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      next_character(text, at);
      const std::string spelled = spell(text, begin, at);
      if (const auto id = vocabulary_.id(spelled)) {
        if (unknown >= 0) word.add(unknown), unknown = -1;
        word.add(*id);
      } else if (!(options_.byte_fallback && add_bytes(spelled, word)) && options_.unknown) {
        if (unknown >= 0 && !options_.fuse_unknown) word.add(unknown);
        unknown = unknown_id(*options_.unknown, spelled);
      }  // without a token for unknowns the character is lost
    }
    if (unknown >= 0) word.add(unknown);
    word.merge();
    word.append_to(ids);
  }

  std::string kind() const override { return "BPE"; }

 private:
  std::string spell(std::string_view text, size_t begin, size_t end) const {
    std::string out;
    if (begin > 0) out += options_.prefix;
    out += text.substr(begin, end - begin);
    if (end == text.size()) out += options_.suffix;
    return out;
  }

  bool add_bytes(std::string_view spelled, Word& word) const {
    std::vector<int64_t> bytes;
    for (const char byte : spelled) {
      const auto id = vocabulary_.id(byte_token(byte));
      if (!id) return false;
      bytes.push_back(*id);
    }
    for (const int64_t id : bytes) word.add(id);
    return true;
  }

  Merges merges_;
  BpeOptions options_;
};

// "a b" in older files, ["a", "b"] in newer ones, where a token may hold a space.
std::pair<std::string, std::string> read_pair(const Json& value, size_t index, const std::string& place) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return {value[0].get<std::string>(), value[1].get<std::string>()};
  if (value.is_string()) {
    const std::string line = value.get<std::string>();
    const size_t space = line.find(' ');
    if (space != line.npos && line.find(' ', space + 1) == line.npos)
      return {line.substr(0, space), line.substr(space + 1)};
  }
  throw Error(fmt::format("merge {} should be two tokens, as \"a b\" or [\"a\", \"b\"]", index)).in(place);
}

Merges read_merges(const Json& list, const Vocabulary& vocabulary, size_t prefix, const std::string& place) {
  if (!list.is_array()) throw Error("\"merges\" should be a list").in(place);
  Merges out;
  out.reserve(list.size());
  uint32_t rank = 0;
  for (size_t index = 0; index < list.size(); ++index) {
    if (list[index].is_string() && list[index].get_ref<const std::string&>().starts_with("#version"))
      continue;
    const auto [left, right] = read_pair(list[index], index, place);
    const std::string joined = right.size() < prefix ? left : left + right.substr(prefix);
    const auto need = [&](const std::string& token) {
      if (const auto id = vocabulary.id(token)) return *id;
      throw Error(fmt::format("merge {} needs the token \"{}\", which is not in the vocabulary", index,
                              printable(token)))
          .in(place);
    };
    const auto first = need(left), second = need(right),
               both = need(joined);  // in this order: errors name the first
    out[pair_key(first, second)] = {rank++, static_cast<int32_t>(both)};
  }
  return out;
}

}  // namespace

std::unique_ptr<Model> read_bpe(const JsonObject& object) {
  if (object.number("dropout", 0, 1, 0) > 0)
    throw Error("the BPE model has a dropout: its ids would be random")
        .in(object.place())
        .hint("set \"dropout\" to null");
  BpeOptions options;
  options.prefix = object.string("continuing_subword_prefix", "");
  options.suffix = object.string("end_of_word_suffix", "");
  if (object.has("unk_token")) options.unknown = object.string("unk_token");
  options.fuse_unknown = object.boolean("fuse_unk", false);
  options.byte_fallback = object.boolean("byte_fallback", false);
  options.ignore_merges = object.boolean("ignore_merges", false);
  Vocabulary vocabulary(object.at("vocab"), object.place());
  Merges merges = read_merges(object.at("merges"), vocabulary, options.prefix.size(), object.place());
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), std::move(options));
}

}  // namespace rankscope::text
