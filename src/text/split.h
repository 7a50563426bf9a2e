// A pattern cuts a text into spans, some of which match; a behaviour says what becomes of the matches.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces.h"

namespace rankscope::text {

struct Span {
  size_t begin = 0, end = 0;
  bool match = false;
};

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
Behavior read_behavior(const std::string& name, const std::string& place);

/// Each character for which `test` holds is a match of its own.
std::vector<Span> match_characters(std::string_view text, const std::function<bool(char32_t)>& test);

/// The spans that stay, in order; `match` then means nothing.
std::vector<Span> apply_behavior(std::vector<Span> spans, Behavior behavior);

/// Appends the parts of `piece` that `spans` name.
void cut(const Piece& piece, const std::vector<Span>& spans, std::vector<Piece>& out);

}  // namespace rankscope::text
