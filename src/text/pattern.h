// What Replace and Split look for: a string, or a regular expression in Oniguruma's Ruby syntax, run by ICU.
#pragma once

#include <unicode/regex.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/split.h"

namespace rankscope::text {

class Pattern {
 public:
  static Pattern literal(std::string text);
  static Pattern regex(const std::string& expression, const std::string& place);
  /// {"String": "..."} or {"Regex": "..."}.
  static Pattern read(const Json& value, const std::string& place);

  /// The whole text as spans, matches and what lies between them. Throws when the expression takes too long.
  std::vector<Span> spans(std::string_view text) const;

 private:
  std::vector<Span> literal_matches(std::string_view text) const;
  std::vector<Span> regex_matches(std::string_view text) const;

  std::string source_;  // the string, or the expression as the file spells it
  std::shared_ptr<const icu::RegexPattern> regex_;
};

/// The expression in ICU's syntax with the meaning it has in Oniguruma's: \s, \w, \h and line ends differ,
/// and so do the flag m and a + behind an interval.
std::string to_icu_syntax(std::string_view expression, const std::string& place);

}  // namespace rankscope::text
