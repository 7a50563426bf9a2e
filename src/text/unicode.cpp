#include "text/unicode.h"

#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <array>
#include <memory>

#include "base/error.h"

namespace rankscope::text {
namespace {

void check(UErrorCode status, const char* action) {
  if (U_FAILURE(status))
    throw Error(std::string("the Unicode library cannot ") + action + ": " + u_errorName(status));
}

UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }

bool known_to_unicode(int version, char32_t c) {
  UVersionInfo age;
  u_charAge(icu(c), age);
  return age[0] >= 1 && age[0] <= version;
}

const icu::Normalizer2& full_normalizer(Form form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* instance = nullptr;
  switch (form) {
    case Form::nfc:
      instance = icu::Normalizer2::getNFCInstance(status);
      break;
    case Form::nfd:
      instance = icu::Normalizer2::getNFDInstance(status);
      break;
    case Form::nfkc:
      instance = icu::Normalizer2::getNFKCInstance(status);
      break;
    case Form::nfkd:
      instance = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  check(status, "load the normalisation tables");
  return *instance;
}

// Characters that Unicode 9 does not know pass through as they are.
const icu::Normalizer2& normalizer(Form form) {
  static const std::array<std::unique_ptr<icu::Normalizer2>, 4> instances = [] {
    UErrorCode status = U_ZERO_ERROR;
    static const icu::UnicodeSet known(u"[:age=9.0:]", status);
    check(status, "load the table of ages");
    std::array<std::unique_ptr<icu::Normalizer2>, 4> out;
    for (const Form each : {Form::nfc, Form::nfd, Form::nfkc, Form::nfkd})
      out[static_cast<size_t>(each)] =
          std::make_unique<icu::FilteredNormalizer2>(full_normalizer(each), known);
    return out;
  }();
  return *instances[static_cast<size_t>(form)];
}

}  // namespace

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    UChar32 c;
    U8_NEXT_OR_FFFD(bytes, at, size, c);
    append_character(out, static_cast<char32_t>(c));
  }
  return out;
}

char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t first = byte(at);
  if (first < 0x80) return at += 1, first;
  if (first < 0xE0) return at += 2, (first & 0x1F) << 6 | (byte(at - 1) & 0x3F);
  if (first < 0xF0) return at += 3, (first & 0x0F) << 12 | (byte(at - 2) & 0x3F) << 6 | (byte(at - 1) & 0x3F);
  at += 4;
  return (first & 0x07) << 18 | (byte(at - 3) & 0x3F) << 12 | (byte(at - 2) & 0x3F) << 6 |
         (byte(at - 1) & 0x3F);
}

void append_character(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) return put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  if (c < 0x10000) return put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return count;
}

bool is_whitespace(char32_t c) { return u_isUWhiteSpace(icu(c)); }

bool is_word(char32_t c) {
  return c == 0x200C || c == 0x200D || u_isUAlphabetic(icu(c)) ||
         (U_GET_GC_MASK(icu(c)) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

bool is_numeric(char32_t c) { return (U_GET_GC_MASK(icu(c)) & U_GC_N_MASK) != 0; }

void append_lowercase(std::string& out, char32_t c) {
  // The only character whose full lower case has two characters without regard to its neighbours.
  if (c == 0x130) return append_character(out, 'i'), append_character(out, 0x307);
  append_character(out, static_cast<char32_t>(u_tolower(icu(c))));
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  if (c == 0x166D || c == 0x111C9) return true;  // until Unicode 12 and 11
  return (U_GET_GC_MASK(icu(c)) & U_GC_P_MASK) != 0 && known_to_unicode(8, c);
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  // The crate has no table of what is not assigned, and so it keeps that.
  return (U_GET_GC_MASK(icu(c)) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 &&
         known_to_unicode(8, c);
}

bool is_nonspacing_mark(char32_t c) {
  if (c == 0x1734) return true;  // until Unicode 14
  const bool later = c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9;
  return u_charType(icu(c)) == U_NON_SPACING_MARK && !later && known_to_unicode(8, c);
}

bool is_combining_mark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // until Unicode 12
  return (U_GET_GC_MASK(icu(c)) & U_GC_M_MASK) != 0 && c != 0x111C9 && known_to_unicode(9, c);
}

std::string normalize(std::string_view text, Form form) {
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  normalizer(form).normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
                                 nullptr, status);
  check(status, "normalise the text");
  return out;
}

std::vector<size_t> grapheme_ends(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  check(status, "load the grapheme rules");
  UText view = UTEXT_INITIALIZER;
  utext_openUTF8(&view, text.data(), static_cast<int64_t>(text.size()), &status);
  breaks->setText(&view, status);
  check(status, "read the text");
  std::vector<size_t> out;
  for (int32_t end = breaks->next(); end != icu::BreakIterator::DONE; end = breaks->next())
    out.push_back(static_cast<size_t>(end));
  utext_close(&view);
  return out;
}

std::string map_characters(std::string_view text, const std::function<void(std::string&, char32_t)>& map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) map(out, next_character(text, at));
  return out;
}

}  // namespace rankscope::text
