// The normalizers that need few lines each; the longer ones have files of their own.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/normalizers.h"
#include "text/pattern.h"
#include "text/pieces.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

struct UnicodeForm : Normalizer {
  explicit UnicodeForm(Form form) : form(form) {}
  void apply(Piece& piece) const override {
    piece.text = normalize(piece.text, form);
    check_length(piece.text.size());
  }
  Form form;
};

struct Lowercase : Normalizer {
  void apply(Piece& piece) const override { piece.text = map_characters(piece.text, append_lowercase); }
};

struct StripAccents : Normalizer {
  void apply(Piece& piece) const override { drop_characters(piece, is_combining_mark); }
};

struct Strip : Normalizer {
  Strip(bool left, bool right) : left(left), right(right) {}
  void apply(Piece& piece) const override {
    const std::string& text = piece.text;
    size_t begin = text.size(), end = 0;  // around what is not white space
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      if (is_whitespace(next_character(text, at))) continue;
      begin = std::min(begin, start);
      end = at;
    }
    if (!left) begin = 0;
    if (!right) end = text.size();
    if (begin > 0) piece.at_start = false;
    piece.text = begin < end ? text.substr(begin, end - begin) : std::string();
  }
  bool left, right;
};

struct Prepend : Normalizer {
  explicit Prepend(std::string prefix) : prefix(std::move(prefix)) {}
  void apply(Piece& piece) const override {
    if (piece.text.empty()) return;
    piece.text = prefix + piece.text;
    check_length(piece.text.size());
  }
  std::string prefix;
};

struct Replace : Normalizer {
  Replace(Pattern pattern, std::string content) : pattern(std::move(pattern)), content(std::move(content)) {}
  void apply(Piece& piece) const override {
    std::string out;
    for (const Span& span : pattern.spans(piece.text)) {
      const std::string_view part = std::string_view(piece.text).substr(span.begin, span.end - span.begin);
      out += span.match ? std::string_view(content) : part;
      check_length(out.size());
      // The library lines a replacement up with the last character it stands for, so only the replacement of
      // one character still begins where the text did.
      if (span.match && span.begin == 0 && span.end > 0 && (content.empty() || count_characters(part) > 1))
        piece.at_start = false;
    }
    piece.text = std::move(out);
  }
  Pattern pattern;
  std::string content;
};

// The clean-up of neural machine translation: control characters go, odd spaces become plain ones.
struct Nmt : Normalizer {
  static bool dropped(char32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  }
  static char32_t mapped(char32_t c) {
    const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    return space ? U' ' : c;
  }
  void apply(Piece& piece) const override {
    drop_characters(piece, dropped);
    piece.text =
        map_characters(piece.text, [](std::string& out, char32_t c) { append_character(out, mapped(c)); });
  }
};

struct ByteLevel : Normalizer {
  void apply(Piece& piece) const override { piece.text = to_byte_level(piece.text); }
};

// No normalizer that is of use makes much more of a text; several that each double it make anything of it.
constexpr size_t kMostGrowth = 64, kSpareGrowth = 1 << 16;

struct Sequence : Normalizer {
  void apply(Piece& piece) const override {
    const size_t most = kMostGrowth * piece.text.size() + kSpareGrowth;
    for (const auto& member : members) {
      member->apply(piece);
      if (piece.text.size() > most)
        throw Error(fmt::format("the normalizer makes the text more than {} times as long", kMostGrowth))
            .in("tokenizer.json")
            .hint("check the replacements of its normalizer");
    }
  }
  std::vector<std::unique_ptr<Normalizer>> members;
};

std::unique_ptr<Normalizer> read_sequence(const JsonObject& object) {
  auto out = std::make_unique<Sequence>();
  for (size_t i = 0; const Json& value : sequence_members(object, "normalizers")) {
    std::unique_ptr<Normalizer> member =
        read_normalizer(value, fmt::format("{}.normalizers[{}]", object.place(), i++));
    // One inside of another is the same as its members: they grow together.
    if (auto* inner = dynamic_cast<Sequence*>(member.get()))
      std::move(inner->members.begin(), inner->members.end(), std::back_inserter(out->members));
    else
      out->members.push_back(std::move(member));
  }
  return out;
}

}  // namespace

void drop_characters(Piece& piece, bool (*test)(char32_t)) {
  size_t first = 0;
  if (!piece.text.empty() && test(next_character(piece.text, first))) piece.at_start = false;
  piece.text = map_characters(piece.text, [&](std::string& out, char32_t c) {
    if (!test(c)) append_character(out, c);
  });
}

std::unique_ptr<Normalizer> read_normalizer(const Json& value, const std::string& place) {
  const JsonObject object(value, place);
  const std::string type = object.string("type");
  if (type == "BertNormalizer") return read_bert_normalizer(object);
  if (type == "NFC") return std::make_unique<UnicodeForm>(Form::nfc);
  if (type == "NFD") return std::make_unique<UnicodeForm>(Form::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(Form::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(Form::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Strip")
    return std::make_unique<Strip>(object.boolean("strip_left", true), object.boolean("strip_right", true));
  if (type == "Prepend") return std::make_unique<Prepend>(object.string("prepend"));
  if (type == "Replace")
    return std::make_unique<Replace>(Pattern::read(object.at("pattern"), place), object.string("content"));
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Precompiled") return read_precompiled(object);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Sequence") return read_sequence(object);
  refuse("normalizer", type,
         {"BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled",
          "Prepend", "Replace", "Sequence", "Strip", "StripAccents"},
         place);
}

}  // namespace rankscope::text
