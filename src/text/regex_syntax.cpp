// Oniguruma's Ruby syntax, which tokenizer.json uses, put into ICU's words. What neither spelling shares is
// left for ICU to refuse: a pattern is never run with another meaning.
#include <fmt/format.h>

#include "base/error.h"
#include "text/pattern.h"

namespace rankscope::text {
namespace {

constexpr const char* kLatinWords = R"(\u00B2\u00B3\u00B9\u00BC-\u00BE)";

class Translator {
 public:
  Translator(std::string_view in, const std::string& place) : in_(in), place_(place) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = in_[at_];
    if (c == '\\') return atom(out_.size()), escape(false);
    if (c == '[') return atom(out_.size()), set();
    if (c == '(') return group();
    if (c == ')') {
      if (!groups_.empty()) atom(groups_.back()), groups_.pop_back();
      return copy(1);
    }
    if (c == '{' && interval() > 0) return repeat();
    // Braces that are no interval are text.
    if (c == '{' || c == '}') return atom(out_.size()), out_ += '\\', copy(1);
    // Lines end with \n only, and no line begins behind the last \n of the text.
    if (c == '^') return atom(out_.size()), out_ += "(?:\\A|(?<=\\n)(?!\\z))", void(++at_);
    if (c == '$') return atom(out_.size()), out_ += "(?=\\n|\\z)", void(++at_);
    if (c != '*' && c != '+' && c != '?' && c != '|') atom(out_.size());
    copy(1);
  }

  void atom(size_t start) { atom_ = start; }
  void copy(size_t count) { out_ += in_.substr(at_, count), at_ += count; }
  char peek(size_t ahead) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }

  // The meaning of a class letter: ICU knows fewer white spaces than Unicode, takes joiners for word
  // characters, and reads \h as a horizontal space.
  static std::string class_letter(char c, bool in_set) {
    // Oniguruma looks Latin-1 up in a table of its own, where ² and ½ are word characters; inside a set it
    // does not.
    const std::string word =
        fmt::format("\\p{{Alphabetic}}\\p{{M}}\\p{{Nd}}\\p{{Pc}}{}", in_set ? "" : kLatinWords);
    switch (c) {
      case 's':
        return "\\p{White_Space}";
      case 'S':
        return "\\P{White_Space}";
      case 'w':
        return fmt::format("[{}]", word);
      case 'W':
        return fmt::format("[^{}]", word);
      case 'Z':
        return in_set ? "" : "(?=\\n?\\z)";
      case 'h':
        return "[0-9a-fA-F]";
      case 'H':
        return "[^0-9a-fA-F]";
      case 'b':  // ICU's passes over combining marks
        return in_set ? "" : fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", word);
      case 'B':
        return in_set ? "" : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", word);
      default:
        return {};
    }
  }

  void escape(bool in_set) {
    const std::string words = class_letter(peek(1), in_set);
    if (!words.empty()) return out_ += words, void(at_ += 2);
    if (peek(1) == 'p' && peek(2) == '{' && peek(3) == '^') return out_ += "\\P{", void(at_ += 4);
    if (peek(1) == 'K' || peek(1) == 'g' || peek(1) == 'y' || peek(1) == 'Y' || peek(1) == 'O')
      throw Error(fmt::format("the regular expression uses \\{}, which is not supported", peek(1)))
          .in(place_);
    // The braces of \p{L} and \x{41} belong to it.
    const size_t end = peek(2) == '{' && std::string_view("pPxuoN").find(peek(1)) != std::string_view::npos
                           ? in_.find('}', at_)
                           : at_ + 1;
    copy(end == std::string_view::npos ? 2 : end + 1 - at_);
  }

  // [:punct:] holds the symbols too, [:xdigit:] only ASCII. The name comes with its colons.
  static std::string_view posix_class(std::string_view name) {
    if (name == ":punct:") return "\\p{P}\\p{S}";
    if (name == ":^punct:") return "[^\\p{P}\\p{S}]";
    if (name == ":xdigit:") return "0-9a-fA-F";
    if (name == ":^xdigit:") return "[^0-9a-fA-F]";
    if (name == ":word:") return "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
    if (name == ":^word:") return "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
    return {};
  }

  void posix() {
    const size_t end = in_.find(":]", at_);
    if (end == std::string_view::npos) return copy(1);
    const std::string_view words = posix_class(in_.substr(at_ + 1, end - at_));
    if (words.empty()) return copy(end + 2 - at_);
    out_ += words;
    at_ = end + 2;
  }

  void set() {
    int depth = 0;
    do {
      if (in_[at_] == '\\') {
        escape(true);
      } else if (in_.substr(at_, 2) == "[:") {
        posix();
      } else if (in_[at_] == '[') {
        ++depth;
        copy(in_.substr(at_, 2) == "[^" ? 2 : 1);
        if (peek(0) == ']') out_ += '\\', copy(1);  // first in a set, it stands for itself
      } else if (in_[at_] == '-' && (peek(1) == '-' || peek(1) == ']' || out_.back() == '[')) {
        out_ += "\\-", ++at_;  // "--" is a difference of sets in ICU
      } else if (in_[at_] == '&' && peek(1) != '&' && out_.back() != '&') {
        out_ += "\\&", ++at_;
      } else {
        depth -= in_[at_] == ']';
        copy(1);
      }
    } while (depth > 0 && at_ < in_.size());
  }

  void group() {
    groups_.push_back(out_.size());
    copy(1);
    if (peek(0) != '?') return;
    copy(1);
    if (peek(0) == '#' || peek(0) == '~')
      throw Error(fmt::format("the regular expression uses (?{}, which is not supported", peek(0)))
          .in(place_);
    // Flags, as in (?i:...) or (?mi-x): the dot that matches line ends is m in one syntax and s in the other.
    const size_t end = in_.find_first_not_of("imx-", at_);
    if (end == std::string_view::npos || (in_[end] != ':' && in_[end] != ')')) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  // The length of {n}, {n,}, {n,m} or {,m} here, or 0: anything else in braces is text.
  size_t interval() const {
    const size_t end = in_.find('}', at_);
    if (end == std::string_view::npos || end == at_ + 1 || end == at_ + 2)
      return end == at_ + 2 && digit(at_ + 1) ? 3 : 0;
    size_t commas = 0;
    for (size_t i = at_ + 1; i < end; ++i) {
      if (in_[i] == ',')
        ++commas;
      else if (!digit(i))
        return 0;
    }
    return commas <= 1 ? end + 1 - at_ : 0;
  }
  bool digit(size_t i) const { return in_[i] >= '0' && in_[i] <= '9'; }

  void repeat() {
    const size_t length = interval();
    if (in_[at_ + 1] == ',') {
      out_ += "{0";
      ++at_;
      copy(length - 1);
    } else {
      copy(length);
    }
    // X{1,3}+ repeats the interval in Ruby; in ICU it would be possessive.
    if (peek(0) == '+') {
      out_.insert(atom_, "(?:");
      out_ += ')';
    }
  }

  std::string_view in_;
  const std::string& place_;
  std::string out_;
  std::vector<size_t> groups_;
  size_t at_ = 0, atom_ = 0;
};

}  // namespace

std::string to_icu_syntax(std::string_view expression, const std::string& place) {
  return Translator(expression, place).run();
}

}  // namespace rankscope::text
