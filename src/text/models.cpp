#include "text/models.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rankscope::text {
namespace {

// Files from before the models had names: each is known by a member no other has.
std::string guess_type(const JsonObject& object) {
  if (object.has("merges")) return "BPE";
  if (object.has("unk_id")) return "Unigram";
  if (object.has("continuing_subword_prefix")) return "WordPiece";
  throw Error("the key \"type\" is missing").in(object.place());
}

}  // namespace

int64_t VocabularyModel::unknown_id(const std::string& token, std::string_view word) const {
  if (const auto id = vocabulary_.id(token)) return *id;
  throw Error(
      fmt::format(
          "the word \"{}\" is unknown, and the token for unknown words, \"{}\", is not in the vocabulary",
          printable(word), printable(token)))
      .in("tokenizer.json")
      .hint("add the token to the vocabulary");
}

std::string byte_token(char byte) { return fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)); }

std::unique_ptr<Model> read_model(const Json& value, const std::string& place) {
  const JsonObject object(value, place);
  const std::string type = object.has("type") ? object.string("type") : guess_type(object);
  if (type == "WordPiece") return read_wordpiece(object);
  if (type == "BPE") return read_bpe(object);
  if (type == "Unigram") return read_unigram(object);
  if (type == "WordLevel") return read_wordlevel(object);
  refuse("model", type, {"BPE", "Unigram", "WordLevel", "WordPiece"}, place);
}

}  // namespace rankscope::text
