#include "text/pattern.h"

#include <fmt/format.h>
#include <unicode/unistr.h>

#include <chrono>

#include "base/error.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

// A hostile expression may backtrack for ever: ICU counts steps (about a millisecond each) and bytes of
// stack.
constexpr int32_t kSteps = 5000;
constexpr int32_t kStackBytes = 32 << 20;
constexpr std::chrono::seconds kPatience{30};  // for all the matches of one text together
constexpr size_t kLongestExpression = 1 << 16;

Error too_slow(const std::string& source, const char* why) {
  return Error(fmt::format("the regular expression \"{}\" {}", printable(source), why))
      .in("tokenizer.json")
      .hint("use a simpler expression, or shorter texts");
}

// Moves a byte offset along the text as the UTF-16 offset moves.
struct Ruler {
  std::string_view text;
  size_t bytes = 0;
  int32_t units = 0;

  size_t to(int32_t target) {
    while (units < target) {
      const size_t before = bytes;
      next_character(text, bytes);
      units += bytes - before == 4 ? 2 : 1;
    }
    return bytes;
  }
};

}  // namespace

Pattern Pattern::literal(std::string text) {
  Pattern out;
  out.source_ = std::move(text);
  return out;
}

Pattern Pattern::regex(const std::string& expression, const std::string& place) {
  if (expression.size() > kLongestExpression)
    throw Error(fmt::format("a regular expression has {} bytes, more than the {} allowed", expression.size(),
                            kLongestExpression))
        .in(place);
  Pattern out;
  out.source_ = expression;
  UErrorCode status = U_ZERO_ERROR;
  UParseError where{};
  out.regex_.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(to_icu_syntax(expression, place)),
                                              UREGEX_UNIX_LINES, where, status));
  if (U_FAILURE(status))
    throw Error(fmt::format("the regular expression \"{}\" is not valid or not supported ({})",
                            printable(expression), u_errorName(status)))
        .in(place);
  return out;
}

Pattern Pattern::read(const Json& value, const std::string& place) {
  const JsonObject object(value, place);
  // The empty string matches between any two characters, which the literal search has no notion of.
  if (object.has("String") && object.string("String").empty()) return regex("", place);
  if (object.has("String")) return literal(object.string("String"));
  if (object.has("Regex")) return regex(object.string("Regex"), place);
  throw Error("a pattern should be {\"String\": ...} or {\"Regex\": ...}").in(place);
}

std::vector<Span> Pattern::spans(std::string_view text) const {
  std::vector<Span> out;
  size_t done = 0;
  for (const Span& match : regex_ ? regex_matches(text) : literal_matches(text)) {
    if (done < match.begin) out.push_back({done, match.begin, false});
    out.push_back(match);
    done = match.end;
  }
  if (done < text.size()) out.push_back({done, text.size(), false});
  return out;
}

std::vector<Span> Pattern::literal_matches(std::string_view text) const {
  std::vector<Span> out;
  for (size_t at = text.find(source_); at != text.npos; at = text.find(source_, at + source_.size()))
    out.push_back({at, at + source_.size(), true});
  return out;
}

std::vector<Span> Pattern::regex_matches(std::string_view text) const {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString wide =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  const std::unique_ptr<icu::RegexMatcher> matcher(regex_->matcher(wide, status));
  if (U_SUCCESS(status)) matcher->setTimeLimit(kSteps, status);
  if (U_SUCCESS(status)) matcher->setStackLimit(kStackBytes, status);

  const auto begin = std::chrono::steady_clock::now();
  std::vector<Span> out;
  Ruler ruler{text};
  int32_t from = 0, last_end = -1;
  while (U_SUCCESS(status) && from <= wide.length() && matcher->find(from, status) && U_SUCCESS(status)) {
    const int32_t start = matcher->start(status), end = matcher->end(status);
    if (start == end) {
      // An empty match right behind the last one does not count; the search goes on one character later.
      from = end < wide.length() ? wide.moveIndex32(end, 1) : end + 1;
      if (end == last_end) continue;
    } else {
      from = end;
    }
    last_end = end;
    const size_t first = ruler.to(start);
    out.push_back({first, ruler.to(end), true});
    if (out.size() % 256 == 0 && std::chrono::steady_clock::now() - begin > kPatience)
      throw too_slow(source_, "takes too long on this text");
  }
  if (status == U_REGEX_TIME_OUT) throw too_slow(source_, "takes too long on this text");
  if (status == U_REGEX_STACK_OVERFLOW) throw too_slow(source_, "needs too much memory on this text");
  if (U_FAILURE(status)) throw too_slow(source_, u_errorName(status));
  return out;
}

}  // namespace rankscope::text
