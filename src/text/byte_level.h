// GPT-2's alphabet: every byte is one printable character, so that a vocabulary of strings covers all bytes.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::text {

/// Printable Latin-1 bytes stand for themselves, the others for U+0100 onwards in order.
std::string to_byte_level(std::string_view bytes);

}  // namespace rankscope::text
