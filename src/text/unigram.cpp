// Unigram: the cut of the text whose tokens have the largest sum of scores (Viterbi over bytes).
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "text/byte_trie.h"
#include "text/models.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

constexpr double kUnknownPenalty = 10.0;

struct Entry {
  std::string token;
  double score;
};

class Unigram : public Model {
 public:
  Unigram(std::vector<Entry> entries, std::optional<int64_t> unknown, bool byte_fallback)
      : entries_(std::move(entries)), unknown_(unknown), byte_fallback_(byte_fallback) {
    double least = std::numeric_limits<double>::infinity();
    // A token given twice keeps the later id, so the list is walked from its end.
    std::vector<std::pair<std::string_view, int64_t>> keys;
    for (int64_t id = size() - 1; id >= 0; --id) {
      const Entry& entry = entries_[static_cast<size_t>(id)];
      keys.emplace_back(entry.token, id);
      ids_.emplace(entry.token, id);
      least = std::min(least, entry.score);
    }
    trie_ = ByteTrie(std::move(keys));
    unknown_score_ = least - kUnknownPenalty;
  }

  void encode(std::string_view text, std::vector<int64_t>& ids) const override {
    for (const std::string_view part : best_cut(text)) {
      if (const auto known = id(part))
        ids.push_back(*known);
      else if (!byte_fallback_ || !append_bytes(part, ids))
        ids.push_back(need_unknown());
    }
  }

  std::optional<int64_t> id(std::string_view token) const override {
    const auto it = ids_.find(token);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }
  std::string token(int64_t id) const override {
    return id >= 0 && id < size() ? entries_[static_cast<size_t>(id)].token : std::string();
  }
  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  std::string kind() const override { return "Unigram"; }

 private:
  struct Best {
    double score = 0;
    size_t begin = SIZE_MAX;  // of the last token of the best cut that ends here
    int64_t id = -1;
  };

  int64_t need_unknown() const {
    if (unknown_) return *unknown_;
    throw Error("a character is unknown, and the Unigram model has no \"unk_id\"").in("tokenizer.json");
  }

  std::vector<std::string_view> best_cut(std::string_view text) const {
    std::vector<Best> best(text.size() + 1);
    const auto offer = [&](size_t begin, size_t end, int64_t id, double score) {
      const double total = score + best[begin].score;
      if (best[end].begin == SIZE_MAX || total > best[end].score) best[end] = {total, begin, id};
    };
    for (size_t at = 0; at < text.size();) {
      size_t next = at;
      next_character(text, next);
      bool covered = false;  // by a token of this one character
      ByteTrie::Node node = ByteTrie::kRoot;
      for (size_t i = at; i < text.size() && (node = trie_.step(node, text[i])) != ByteTrie::kRoot; ++i) {
        const int64_t id = trie_.value(node);
        if (id < 0) continue;
        offer(at, i + 1, id, entries_[static_cast<size_t>(id)].score);
        covered |= i + 1 == next;
      }
      if (!covered) offer(at, next, need_unknown(), unknown_score_);
      at = next;
    }
    return walk_back(text, best);
  }

  // Neighbouring unknowns become one.
  std::vector<std::string_view> walk_back(std::string_view text, const std::vector<Best>& best) const {
    std::vector<std::string_view> out;
    bool joining = false;
    for (size_t end = text.size(); end > 0;) {
      const Best& here = best[end];
      const bool unknown = unknown_ && here.id == *unknown_;
      const std::string_view part = text.substr(here.begin, end - here.begin);
      if (unknown && joining)
        out.back() = text.substr(here.begin, part.size() + out.back().size());
      else
        out.push_back(part);
      joining = unknown;
      end = here.begin;
    }
    return {out.rbegin(), out.rend()};
  }

  bool append_bytes(std::string_view part, std::vector<int64_t>& ids) const {
    const size_t before = ids.size();
    for (const char byte : part) {
      const auto known = id(byte_token(byte));
      if (!known) return ids.resize(before), false;
      ids.push_back(*known);
    }
    return true;
  }

  std::vector<Entry> entries_;
  StringMap ids_;
  ByteTrie trie_;
  std::optional<int64_t> unknown_;
  double unknown_score_ = 0;
  bool byte_fallback_;
};

Entry read_entry(const Json& value, size_t index, const std::string& place) {
  const bool shape = value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_number();
  if (!shape || !std::isfinite(value[1].get<double>()))
    throw Error(fmt::format("entry {} of \"vocab\" should be a token and its score", index)).in(place);
  Entry out{value[0].get<std::string>(), value[1].get<double>()};
  if (out.token.size() > kLongestToken)
    throw Error(fmt::format("the token \"{}\" has {} bytes, more than the {} allowed",
                            printable(out.token, 40), out.token.size(), kLongestToken))
        .in(place);
  return out;
}

}  // namespace

std::unique_ptr<Model> read_unigram(const JsonObject& object) {
  const Json& vocab = object.at("vocab");
  if (!vocab.is_array()) throw Error("\"vocab\" of a Unigram model should be a list").in(object.place());
  std::vector<Entry> entries;
  for (const Json& value : vocab) entries.push_back(read_entry(value, entries.size(), object.place()));
  if (entries.empty()) throw Error("\"vocab\" is empty").in(object.place());
  std::optional<int64_t> unknown;
  if (object.has("unk_id")) unknown = object.integer("unk_id", 0, static_cast<int64_t>(entries.size()) - 1);
  return std::make_unique<Unigram>(std::move(entries), unknown, object.boolean("byte_fallback", false));
}

}  // namespace rankscope::text
