#include "text/pattern.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

// A hostile expression may backtrack for ever, so Oniguruma counts how often it does, 15 to 70 ns each time:
// a search ends after seven seconds, and a microsecond more for each byte of a long text. It does not count
// what it reads without turning back: to read on to the end from every place, as (?=\p{L}*\d)x does,
// takes 4.5 s on 40,000 letters and grows with the square of their number.
constexpr unsigned long kStepsAtOnePlace = 10'000'000;  // what the `tokenizers` library allows
constexpr unsigned long kStepsOfASearch = 100'000'000, kStepsPerByte = 16;
constexpr unsigned kMostOpenChoices = 4 << 20;  // 32 bytes each; a run of letters leaves one at each letter
constexpr std::chrono::seconds kPatience{30};   // for all the matches of one text together
constexpr size_t kLongestExpression = 1 << 16;

// Refused is what these limits do not hold, with the time it was seen to take:
// - \g<name>, the call of a group: 26 groups, each calling the next one twice, compile in 9 s, and every
//   further group doubles that.
// - \X, \y and \Y, text segments: 2 s on 10,000 flags, and four times that on twice as many.
// - (?~...), absent parts: more than 100 s on 20,000 letters.
// - (?{...}) and (*NAME), calls into the program.
constexpr std::string_view kRefusedLetters = "gXyY";
constexpr unsigned kRefused = ONIG_SYN_OP2_ESC_G_SUBEXP_CALL | ONIG_SYN_OP2_ESC_X_Y_TEXT_SEGMENT |
                              ONIG_SYN_OP2_QMARK_TILDE_ABSENT_GROUP |
                              ONIG_SYN_OP2_QMARK_BRACE_CALLOUT_CONTENTS | ONIG_SYN_OP2_ASTERISK_CALLOUT_NAME;

OnigSyntaxType* syntax() {
  static OnigSyntaxType instance = [] {
    OnigEncoding encoding = ONIG_ENCODING_UTF8;
    onig_initialize(&encoding, 1);
    OnigSyntaxType out;
    onig_copy_syntax(&out, ONIG_SYNTAX_ONIGURUMA);
    onig_set_syntax_op2(&out, onig_get_syntax_op2(&out) & ~kRefused);
    return out;
  }();
  return &instance;
}

// A letter that is switched off would stand for itself: a pattern is never run with another meaning.
void refuse_letters(std::string_view in, const std::string& place) {
  for (size_t at = 0; at + 1 < in.size(); ++at)
    if (in[at] == '\\' && kRefusedLetters.find(in[++at]) != std::string_view::npos)
      throw Error(fmt::format("the regular expression uses \\{}, which is not supported", in[at])).in(place);
}

// [:punct:] holds the symbols since Oniguruma 6.9.9, which `tokenizers` builds in; 6.9.8, which Debian 12
// has, lacks these 7741 characters, $ and + among them. Spelled out, every version takes it alike. Outside
// of a set the nine characters are a set themselves.
std::string spell_out_punct(std::string_view in) {
  std::string out;
  int sets = 0;  // that are open, as in [a[bc]]
  while (!in.empty()) {
    size_t length = 1;
    if (in[0] == '\\') {
      length = 2;
    } else if (sets > 0 && (in.starts_with("[:punct:]") || in.starts_with("[:^punct:]"))) {
      out += in[2] == '^' ? "[^\\p{P}\\p{S}]" : "\\p{P}\\p{S}";
      in.remove_prefix(in.find(']') + 1);
      continue;
    } else if (in[0] == '[') {
      ++sets;
      if (in.substr(length).starts_with('^')) ++length;
      if (in.substr(length).starts_with(']')) ++length;  // first in a set, it stands for itself
    } else if (in[0] == ']' && sets > 0) {
      --sets;
    }
    out += in.substr(0, length);
    in.remove_prefix(std::min(length, in.size()));
  }
  return out;
}

std::string reason(int code, OnigErrorInfo* info = nullptr) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int size = onig_error_code_to_str(text, code, info);
  return printable({reinterpret_cast<const char*>(text), static_cast<size_t>(size)});
}

Error cannot_run(const std::string& source, std::string_view why) {
  return Error(fmt::format("the regular expression \"{}\" {}", printable(source), why))
      .in("tokenizer.json")
      .hint("use a simpler expression, or shorter texts");
}

Error too_slow(const std::string& source) { return cannot_run(source, "takes too long on this text"); }

Error failed(const std::string& source, int code) {
  if (code == ONIGERR_MATCH_STACK_LIMIT_OVER) return cannot_run(source, "needs too much memory on this text");
  if (code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER)
    return too_slow(source);
  return cannot_run(source, fmt::format("fails on this text ({})", reason(code)));
}

struct Free {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
  void operator()(OnigMatchParam* limits) const { onig_free_match_param(limits); }
};

std::unique_ptr<OnigMatchParam, Free> limits_for(size_t bytes) {
  std::unique_ptr<OnigMatchParam, Free> out(onig_new_match_param());
  onig_initialize_match_param(out.get());
  onig_set_retry_limit_in_match_of_match_param(out.get(), kStepsAtOnePlace);
  onig_set_retry_limit_in_search_of_match_param(out.get(), kStepsOfASearch + kStepsPerByte * bytes);
  onig_set_match_stack_limit_size_of_match_param(out.get(), kMostOpenChoices);
  return out;
}

bool between_characters(std::string_view text, size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

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
  refuse_letters(expression, place);
  const std::string spelled = spell_out_punct(expression);
  const auto* begin = reinterpret_cast<const OnigUChar*>(spelled.data());
  regex_t* compiled = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&compiled, begin, begin + spelled.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                            syntax(), &info);
  if (code != ONIG_NORMAL)
    throw Error(fmt::format("the regular expression \"{}\" is not valid or not supported ({})",
                            printable(expression), reason(code, &info)))
        .in(place);
  Pattern out;
  out.source_ = expression;
  out.regex_.reset(compiled, onig_free);
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
  const std::unique_ptr<OnigRegion, Free> region(onig_region_new());
  const std::unique_ptr<OnigMatchParam, Free> limits = limits_for(text.size());
  const auto* begin = reinterpret_cast<const OnigUChar*>(text.data());
  const OnigUChar* end = begin + text.size();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::vector<Span> out;
  for (size_t from = 0; from <= text.size();) {
    const int found = onig_search_with_param(regex_.get(), begin, end, begin + from, end, region.get(),
                                             ONIG_OPTION_NONE, limits.get());
    if (found == ONIG_MISMATCH) break;
    if (found < 0) throw failed(source_, found);
    if (std::chrono::steady_clock::now() > deadline) throw too_slow(source_);
    const Span match{static_cast<size_t>(region->beg[0]), static_cast<size_t>(region->end[0]), true};
    const size_t done = out.empty() ? 0 : out.back().end;
    // \K can move the beginning of a match back to before the last one; the pieces must stay whole
    // characters.
    if (match.begin < done || match.end < match.begin || !between_characters(text, match.begin) ||
        !between_characters(text, match.end))
      throw cannot_run(source_, "matches what is no part of the text");
    from = match.end;
    if (match.begin == match.end) {
      // An empty match right behind the last one does not count; the search goes on one character later.
      if (from < text.size())
        next_character(text, from);
      else
        ++from;
      if (!out.empty() && match.end == done) continue;
    }
    out.push_back(match);
  }
  return out;
}

}  // namespace rankscope::text
