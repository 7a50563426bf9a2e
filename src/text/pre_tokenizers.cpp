// Pre-tokenizers: where the text is cut before the model sees it.
#include <fmt/format.h>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/pattern.h"
#include "text/pieces.h"
#include "text/split.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

// GPT-2's words: contractions, letters, digits and other signs, each with the space before it.
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct ByCharacter : PreTokenizer {
  ByCharacter(bool (*test)(char32_t), Behavior behavior) : test(test), behavior(behavior) {}
  void split(Piece piece, std::vector<Piece>& out) const override {
    cut(piece, apply_behavior(match_characters(piece.text, test), behavior), out);
  }
  bool (*test)(char32_t);
  Behavior behavior;
};

struct ByPattern : PreTokenizer {
  ByPattern(Pattern pattern, Behavior behavior, bool invert)
      : pattern(std::move(pattern)), behavior(behavior), invert(invert) {}
  void split(Piece piece, std::vector<Piece>& out) const override {
    std::vector<Span> spans = pattern.spans(piece.text);
    if (invert)
      for (Span& span : spans) span.match = !span.match;
    cut(piece, apply_behavior(std::move(spans), behavior), out);
  }
  Pattern pattern;
  Behavior behavior;
  bool invert;
};

// Runs of word characters and runs of everything else that is not white space.
struct Whitespace : PreTokenizer {
  void split(Piece piece, std::vector<Piece>& out) const override {
    enum { space, word, other };
    std::vector<Span> spans;
    int previous = space;
    for (size_t at = 0; at < piece.text.size();) {
      const size_t begin = at;
      const char32_t c = next_character(piece.text, at);
      const int kind = is_word(c) ? word : is_whitespace(c) ? space : other;
      if (kind != space && kind == previous)
        spans.back().end = at;
      else if (kind != space)
        spans.push_back({begin, at});
      previous = kind;
    }
    cut(piece, spans, out);
  }
};

struct ByteLevel : PreTokenizer {
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space(add_prefix_space), use_regex(use_regex), words(Pattern::regex(kGpt2, "ByteLevel")) {}
  void split(Piece piece, std::vector<Piece>& out) const override {
    if (add_prefix_space && !piece.text.starts_with(' ')) piece.text.insert(0, 1, ' ');
    const size_t first = out.size();
    if (use_regex)
      cut(piece, words.spans(piece.text), out);
    else
      out.push_back(std::move(piece));
    for (size_t i = first; i < out.size(); ++i) out[i].text = to_byte_level(out[i].text);
  }
  bool add_prefix_space, use_regex;
  Pattern words;
};

// Spaces become a visible character that stays with the word behind it.
struct Metaspace : PreTokenizer {
  enum class Scheme { always, first, never };
  void split(Piece piece, std::vector<Piece>& out) const override {
    std::string text;
    append_character(text, replacement);
    const std::string mark = text;
    text.clear();
    for (const char c : piece.text) c == ' ' ? text += mark : text += c;
    const bool wanted = scheme == Scheme::always || (scheme == Scheme::first && piece.at_start);
    piece.text = wanted && !text.starts_with(mark) ? mark + text : std::move(text);
    if (!cuts) return out.push_back(std::move(piece));
    const auto spans = match_characters(piece.text, [this](char32_t c) { return c == replacement; });
    cut(piece, apply_behavior(spans, Behavior::merged_with_next), out);
  }
  char32_t replacement = 0x2581;
  Scheme scheme = Scheme::always;
  bool cuts = true;
};

struct Sequence : PreTokenizer {
  void split(Piece piece, std::vector<Piece>& out) const override {
    std::vector<Piece> now;
    now.push_back(std::move(piece));
    for (const auto& member : members) {
      std::vector<Piece> next;
      for (Piece& part : now)
        if (!part.text.empty()) member->split(std::move(part), next);
      now = std::move(next);
    }
    std::move(now.begin(), now.end(), std::back_inserter(out));
  }
  std::vector<std::unique_ptr<PreTokenizer>> members;
};

std::unique_ptr<PreTokenizer> read_sequence(const JsonObject& object) {
  auto out = std::make_unique<Sequence>();
  for (size_t i = 0; const Json& member : sequence_members(object, "pretokenizers"))
    out->members.push_back(
        read_pre_tokenizer(member, fmt::format("{}.pretokenizers[{}]", object.place(), i++)));
  return out;
}

char32_t read_character(const JsonObject& object, const char* key) {
  const std::string text = object.string(key);
  if (count_characters(text) != 1)
    throw Error(fmt::format("\"{}\" should be one character", key)).in(object.place());
  size_t at = 0;
  return next_character(text, at);
}

std::unique_ptr<PreTokenizer> read_metaspace(const JsonObject& object) {
  auto out = std::make_unique<Metaspace>();
  out->replacement = read_character(object, "replacement");
  out->cuts = object.boolean("split", true);
  const bool prefix = object.boolean("add_prefix_space", true);  // the older spelling of the scheme
  const std::string scheme = object.string("prepend_scheme", prefix ? "always" : "never");
  if (!prefix && scheme != "never")
    throw Error(
        fmt::format("\"add_prefix_space\" is false, but \"prepend_scheme\" is \"{}\"", printable(scheme)))
        .in(object.place());
  if (scheme != "always" && scheme != "first" && scheme != "never")
    refuse("prepend_scheme", scheme, {"always", "first", "never"}, object.place());
  out->scheme = scheme == "always"  ? Metaspace::Scheme::always
                : scheme == "first" ? Metaspace::Scheme::first
                                    : Metaspace::Scheme::never;
  return out;
}

std::unique_ptr<PreTokenizer> read_bert() {
  auto out = std::make_unique<Sequence>();
  out->members.push_back(std::make_unique<ByCharacter>(is_whitespace, Behavior::removed));
  out->members.push_back(std::make_unique<ByCharacter>(is_punctuation, Behavior::isolated));
  return out;
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& value, const std::string& place) {
  const JsonObject object(value, place);
  const std::string type = object.string("type");
  if (type == "BertPreTokenizer") return read_bert();
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return std::make_unique<ByCharacter>(is_whitespace, Behavior::removed);
  if (type == "ByteLevel")
    return std::make_unique<ByteLevel>(object.boolean("add_prefix_space", true),
                                       object.boolean("use_regex", true));
  if (type == "Metaspace") return read_metaspace(object);
  if (type == "Split")
    return std::make_unique<ByPattern>(Pattern::read(object.at("pattern"), place),
                                       read_behavior(object.string("behavior"), place),
                                       object.boolean("invert", false));
  if (type == "Punctuation")
    return std::make_unique<ByCharacter>(is_punctuation,
                                         read_behavior(object.string("behavior", "Isolated"), place));
  if (type == "Digits")
    return std::make_unique<ByCharacter>(
        is_numeric, object.boolean("individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
  if (type == "Sequence") return read_sequence(object);
  refuse("pre-tokenizer", type,
         {"BertPreTokenizer", "ByteLevel", "Digits", "Metaspace", "Punctuation", "Sequence", "Split",
          "Whitespace", "WhitespaceSplit"},
         place);
}

}  // namespace rankscope::text
