// Characters as the `tokenizers` library sees them. It mixes four sets of Unicode tables of different ages
// (the Rust standard library, and three crates); each function here says which one it stands for. Strings are
// UTF-8 and valid: `repair_utf8` is called once, at the door.
//
// Checked against the library, character by character: the only differences left are characters younger than
// the ICU at hand (72 knows Unicode 15; the library's recent tables are at 16 and 17), which ICU takes for
// unassigned. Regular expressions (pattern.h) have Oniguruma's tables: 6.9.8 knows Unicode 14, and all that it
// sees otherwise than ICU 72 are the 4489 characters of Unicode 15.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::text {

/// Every ill-formed part becomes U+FFFD (maximal subparts, as browsers do it).
std::string repair_utf8(std::string_view text);

/// The code point at `at` of valid UTF-8; moves `at` behind it.
char32_t next_character(std::string_view text, size_t& at);
void append_character(std::string& out, char32_t c);
size_t count_characters(std::string_view text);

// The standard library and the regex crate: recent Unicode.
bool is_whitespace(char32_t c);  // White_Space
bool is_word(char32_t c);        // \w: letters, marks, decimal digits, connectors, joiners
bool is_numeric(char32_t c);     // general category N
void append_lowercase(std::string& out, char32_t c);  // one character at a time: no final sigma

// The categories crate: Unicode 8, later characters are not assigned.
bool is_punctuation(char32_t c);      // ASCII punctuation (symbols included) or category P
bool is_control(char32_t c);          // category C, but not tab and line ends
bool is_nonspacing_mark(char32_t c);  // category Mn

// The normalisation crate: Unicode 9.
bool is_combining_mark(char32_t c);  // category M
enum class Form { nfc, nfd, nfkc, nfkd };
std::string normalize(std::string_view text, Form form);

/// The ends of the extended grapheme clusters, in bytes.
std::vector<size_t> grapheme_ends(std::string_view text);

/// The text with every character replaced by what `map` appends for it.
std::string map_characters(std::string_view text, const std::function<void(std::string&, char32_t)>& map);

}  // namespace rankscope::text
