#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace rankscope::text {
namespace {

std::array<std::string, 256> make_alphabet() {
  std::array<std::string, 256> out;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool plain = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_character(out[byte], plain ? byte : next++);
  }
  return out;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  static const std::array<std::string, 256> alphabet = make_alphabet();
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) out += alphabet[static_cast<unsigned char>(byte)];
  return out;
}

}  // namespace rankscope::text
