#include "text/split.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

// A match joins the span before it, unless that one came from a match too: "--" gives "a-" and "-".
std::vector<Span> join_with_neighbour(const std::vector<Span>& spans) {
  std::vector<Span> out;
  bool previous = false;
  for (const Span& span : spans) {
    if (span.match && !previous && !out.empty()) {
      out.back().begin = std::min(out.back().begin, span.begin);
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
    previous = span.match;
  }
  return out;
}

std::vector<Span> join_equal(const std::vector<Span>& spans) {
  std::vector<Span> out;
  bool previous = false;
  for (const Span& span : spans) {
    if (span.match == previous && !out.empty())
      out.back().end = span.end;
    else
      out.push_back(span);
    previous = span.match;
  }
  return out;
}

}  // namespace

Behavior read_behavior(const std::string& name, const std::string& place) {
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  refuse("split behavior", name,
         {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}, place);
}

std::vector<Span> match_characters(std::string_view text, const std::function<bool(char32_t)>& test) {
  std::vector<Span> out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool match = test(next_character(text, at));
    if (!match && !out.empty() && !out.back().match)
      out.back().end = at;
    else
      out.push_back({begin, at, match});
  }
  return out;
}

std::vector<Span> apply_behavior(std::vector<Span> spans, Behavior behavior) {
  switch (behavior) {
    case Behavior::isolated:
      return spans;
    case Behavior::removed:
      std::erase_if(spans, [](const Span& span) { return span.match; });
      return spans;
    case Behavior::contiguous:
      return join_equal(spans);
    case Behavior::merged_with_previous:
      return join_with_neighbour(spans);
    case Behavior::merged_with_next:
      std::reverse(spans.begin(), spans.end());
      spans = join_with_neighbour(spans);
      std::reverse(spans.begin(), spans.end());
      return spans;
  }
  return spans;
}

void cut(const Piece& piece, const std::vector<Span>& spans, std::vector<Piece>& out) {
  for (const Span& span : spans)
    if (span.begin < span.end)
      out.push_back(
          {piece.text.substr(span.begin, span.end - span.begin), piece.at_start && span.begin == 0});
}

}  // namespace rankscope::text
