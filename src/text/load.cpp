#include "text/load.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/pieces.h"
#include "text/unicode.h"

namespace rankscope {
namespace {

constexpr int kDeepest = 64;  // real files stay under 12; deeper JSON would only exhaust the stack
constexpr size_t kLongestInput = 64u << 20;

class Pipeline : public Tokenizer {
 public:
  Pipeline(const Json& value, const std::string& place) {
    const JsonObject object(value, place);
    if (object.has("normalizer"))
      normalizer_ = text::read_normalizer(object.at("normalizer"), place + ", normalizer");
    if (object.has("pre_tokenizer"))
      pre_tokenizer_ = text::read_pre_tokenizer(object.at("pre_tokenizer"), place + ", pre_tokenizer");
    model_ = text::read_model(object.at("model"), place + ", model");
    post_processor_ = text::read_post_processor(
        object.has("post_processor") ? object.at("post_processor") : Json(), place + ", post_processor");
    added_ = std::make_unique<text::AddedTokens>(
        object.has("added_tokens") ? object.at("added_tokens") : Json(), *model_, normalizer_.get(), place);
  }

  Encoding encode(std::string_view text, bool add_special_tokens) const override {
    return post_processor_->process(sequence(text, 0), nullptr, add_special_tokens);
  }

  Encoding encode_pair(std::string_view text, std::string_view pair, bool add_special_tokens) const override {
    const Encoding second = sequence(pair, 1);
    return post_processor_->process(sequence(text, 0), &second, add_special_tokens);
  }

  int64_t vocabulary_size() const override { return model_->size() + added_->count_new(); }

  std::string token(int64_t id) const override {
    const text::AddedToken* added = added_->find(id);
    return added != nullptr ? added->content : model_->token(id);
  }

  std::optional<int64_t> id(std::string_view token) const override {
    const auto added = added_->id(token);
    return added ? added : model_->id(token);
  }

  bool is_special(int64_t id) const override {
    const text::AddedToken* added = added_->find(id);
    return added != nullptr && added->special;
  }

  std::string kind() const override { return model_->kind(); }

 private:
  Encoding sequence(std::string_view input, int64_t type) const {
    if (input.size() > kLongestInput)
      throw Error(fmt::format("the text has {} bytes, more than the {} MiB a tokenizer takes at once",
                              input.size(), kLongestInput >> 20))
          .hint("pass it in parts");
    Encoding out;
    for (text::Piece& piece : added_->extract(text::repair_utf8(input))) {
      if (piece.id >= 0) {
        out.ids.push_back(piece.id);
        out.special.push_back(piece.special);
        continue;
      }
      for (const text::Piece& word : words(std::move(piece)))
        if (!word.text.empty()) model_->encode(word.text, out.ids);
      out.special.resize(out.ids.size(), false);
    }
    out.types.assign(out.ids.size(), type);
    return out;
  }

  std::vector<text::Piece> words(text::Piece piece) const {
    std::vector<text::Piece> out;
    if (pre_tokenizer_)
      pre_tokenizer_->split(std::move(piece), out);
    else
      out.push_back(std::move(piece));
    return out;
  }

  std::unique_ptr<text::Normalizer> normalizer_;
  std::unique_ptr<text::PreTokenizer> pre_tokenizer_;
  std::unique_ptr<text::Model> model_;
  std::unique_ptr<text::PostProcessor> post_processor_;
  std::unique_ptr<text::AddedTokens> added_;
};

// Counts brackets outside strings before anything builds a tree of them.
void check_depth(std::string_view json, const std::string& place) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\';
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kDeepest)
      throw Error(fmt::format("the JSON is nested more than {} levels deep", kDeepest))
          .in(fmt::format("{}, byte {}", place, i));
  }
}

}  // namespace

Json tokenizer_json(std::string_view text, const std::string& place) {
  check_depth(text, place);
  return parse_json(text, place);
}

std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place) {
  return tokenizer_from_json(tokenizer_json(text, place), place);
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const Json& value, const std::string& place) {
  return std::make_unique<Pipeline>(value, place);
}

}  // namespace rankscope
