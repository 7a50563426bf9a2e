#include "text/models.h"

namespace rankscope::text {
namespace {

class WordLevel : public VocabularyModel {
 public:
  WordLevel(Vocabulary vocabulary, std::string unknown)
      : VocabularyModel(std::move(vocabulary)), unknown_(std::move(unknown)) {}
  void encode(std::string_view word, std::vector<int64_t>& ids) const override {
    const auto id = vocabulary_.id(word);
    ids.push_back(id ? *id : unknown_id(unknown_, word));
  }
  std::string kind() const override { return "WordLevel"; }

 private:
  std::string unknown_;
};

}  // namespace

std::unique_ptr<Model> read_wordlevel(const JsonObject& object) {
  return std::make_unique<WordLevel>(Vocabulary(object.at("vocab"), object.place()),
                                     object.string("unk_token", "<unk>"));
}

}  // namespace rankscope::text
