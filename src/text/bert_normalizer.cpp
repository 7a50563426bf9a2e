#include "text/normalizers.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

// The ideographs that BERT sets apart by spaces; the gap before 2B920 is in the original list.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

struct BertNormalizer : Normalizer {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;

  void apply(Piece& piece) const override {
    if (clean_text) clean(piece);
    if (handle_chinese_chars)
      piece.text = map_characters(piece.text, [](std::string& out, char32_t c) {
        if (is_ideograph(c)) out += ' ';
        append_character(out, c);
        if (is_ideograph(c)) out += ' ';
      });
    if (strip_accents) {
      piece.text = normalize(piece.text, Form::nfd);
      drop_characters(piece, is_nonspacing_mark);
    }
    if (lowercase) piece.text = map_characters(piece.text, append_lowercase);
  }

  static void clean(Piece& piece) {
    drop_characters(piece, [](char32_t c) { return c == 0 || c == 0xFFFD || is_control(c); });
    piece.text = map_characters(
        piece.text, [](std::string& out, char32_t c) { append_character(out, is_whitespace(c) ? U' ' : c); });
  }
};

}  // namespace

std::unique_ptr<Normalizer> read_bert_normalizer(const JsonObject& object) {
  auto out = std::make_unique<BertNormalizer>();
  out->clean_text = object.boolean("clean_text", true);
  out->handle_chinese_chars = object.boolean("handle_chinese_chars", true);
  out->lowercase = object.boolean("lowercase", true);
  out->strip_accents = object.boolean("strip_accents", out->lowercase);
  return out;
}

}  // namespace rankscope::text
