// What Replace and Split look for: a string, or a regular expression. The `tokenizers` library runs its
// expressions with Oniguruma, and so do we, with the same syntax and the same encoding.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/split.h"

struct re_pattern_buffer;  // Oniguruma's compiled expression

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

  std::string source_;  // the string, or the expression
  std::shared_ptr<re_pattern_buffer> regex_;
};

}  // namespace rankscope::text
