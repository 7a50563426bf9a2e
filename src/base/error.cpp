#include "base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"

namespace rankscope {

Error Error::in(std::string place) && {
  if (place_.empty()) place_ = std::move(place);
  return std::move(*this);
}

Error Error::hint(std::string advice) && {
  if (advice_.empty()) advice_ = std::move(advice);
  return std::move(*this);
}

std::string Error::render() const {
  std::string out = fmt::format("error: {}\n", printable(message_, 2000));
  if (!place_.empty()) out += fmt::format("  in   {}\n", printable(place_, 1000));
  if (!advice_.empty()) out += fmt::format("  try  {}\n", printable(advice_, 1000));
  return out;
}

Error unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known,
                   std::string_view list_command) {
  std::string advice = fmt::format("{}", fmt::join(nearest(name, known, 3), ", "));
  if (!list_command.empty()) advice += fmt::format("   ({} shows all {})", list_command, known.size());
  return usage_error(fmt::format("there is no {} \"{}\"", what, printable(name))).hint(advice);
}

namespace {
// Length of the valid UTF-8 sequence at the start of `s`, or 0.
size_t utf8_sequence(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = byte(0);
  const size_t n = c < 0x80                ? 1
                   : c >= 0xC2 && c < 0xE0 ? 2
                   : c >= 0xE0 && c < 0xF0 ? 3
                   : c >= 0xF0 && c < 0xF5 ? 4
                                           : 0;
  if (n == 0 || n > s.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Longer than needed (some decoders take E0 80 9B for the escape character), half of a pair, or no
  // character.
  const unsigned char second = n > 1 ? byte(1) : 0;
  const bool none = (c == 0xE0 && second < 0xA0) || (c == 0xED && second >= 0xA0) ||
                    (c == 0xF0 && second < 0x90) || (c == 0xF4 && second >= 0x90);
  return none ? 0 : n;
}

// Embeddings, overrides and isolates can make a name read backwards; U+2028 and U+2029 end a line.
bool turns_direction(std::string_view character) {
  const auto is = [&](const char* other) { return character == other; };
  if (is("\u061C") || is("\u200E") || is("\u200F")) return true;
  return (character >= "\u2028" && character <= "\u202E") || (character >= "\u2066" && character <= "\u2069");
}

unsigned code_of(std::string_view c) {
  const auto low = [&](size_t i, unsigned mask) { return static_cast<unsigned char>(c[i]) & mask; };
  return c.size() == 2 ? low(0, 0x1F) << 6 | low(1, 0x3F)
                       : low(0, 0x0F) << 12 | low(1, 0x3F) << 6 | low(2, 0x3F);
}
}  // namespace

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_sequence(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    // C1 controls (U+0080..U+009F) are two bytes, 0xC2 0x80..0x9F, and drive terminals just as C0 does.
    const bool c1 = n == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool escaped = n == 0 || c < 0x20 || c == 0x7F || c1;
    const std::string_view character = text.substr(i, !escaped ? n : c1 ? 2 : 1);
    std::string shown;
    if (escaped)
      for (const char byte : character) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    else
      shown =
          turns_direction(character) ? fmt::format("\\u{:04x}", code_of(character)) : std::string(character);
    if (out.size() + shown.size() > limit) return out + "...";
    out += shown;
    i += character.size();
  }
  return out;
}

}  // namespace rankscope
