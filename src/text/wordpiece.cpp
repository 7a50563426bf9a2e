// WordPiece: the longest token at each place of a word; one failure makes the whole word unknown.
#include "text/byte_trie.h"
#include "text/models.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

class WordPiece : public VocabularyModel {
 public:
  WordPiece(Vocabulary vocabulary, const std::string& prefix, std::string unknown, size_t longest)
      : VocabularyModel(std::move(vocabulary)), unknown_(std::move(unknown)), longest_(longest) {
    std::vector<std::pair<std::string_view, int64_t>> first, later;
    for (const auto& [token, id] : vocabulary_.ids()) {
      first.emplace_back(token, id);
      if (token.starts_with(prefix)) later.emplace_back(std::string_view(token).substr(prefix.size()), id);
    }
    first_ = ByteTrie(std::move(first));
    later_ = ByteTrie(std::move(later));
  }

  void encode(std::string_view word, std::vector<int64_t>& ids) const override {
    const size_t before = ids.size();
    if (count_characters(word) <= longest_ && encode_known(word, ids)) return;
    ids.resize(before);
    ids.push_back(unknown_id(unknown_, word));
  }

  std::string kind() const override { return "WordPiece"; }

 private:
  bool encode_known(std::string_view word, std::vector<int64_t>& ids) const {
    for (size_t at = 0; at < word.size();) {
      const ByteTrie& trie = at == 0 ? first_ : later_;
      int64_t best = -1;
      size_t end = at;
      ByteTrie::Node node = ByteTrie::kRoot;
      for (size_t i = at; i < word.size() && (node = trie.step(node, word[i])) != ByteTrie::kRoot; ++i)
        if (trie.value(node) >= 0) best = trie.value(node), end = i + 1;
      if (best < 0) return false;
      ids.push_back(best);
      at = end;
    }
    return true;
  }

  ByteTrie first_, later_;  // tokens that begin a word; tokens that continue one, without their prefix
  std::string unknown_;
  size_t longest_;
};

}  // namespace

std::unique_ptr<Model> read_wordpiece(const JsonObject& object) {
  return std::make_unique<WordPiece>(
      Vocabulary(object.at("vocab"), object.place()), object.string("continuing_subword_prefix", "##"),
      object.string("unk_token", "[UNK]"),
      static_cast<size_t>(object.integer("max_input_chars_per_word", 0, INT64_MAX, 100)));
}

}  // namespace rankscope::text
