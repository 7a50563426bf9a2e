#include "studies/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "base/commas.h"
#include "base/error.h"

namespace rankscope {
namespace {

bool whole(std::string_view text, int64_t& value) {
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && rest == text.data() + text.size();
}

bool real(std::string_view text, double& value) {
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && rest == text.data() + text.size() && std::isfinite(value);
}

// The value a text means for a key of this type; what does not read as one stays a word and is refused later.
Scalar read_as(const Scalar& like, std::string_view text) {
  if (std::holds_alternative<bool>(like)) {
    if (text == "true" || text == "yes" || text == "1") return true;
    if (text == "false" || text == "no" || text == "0") return false;
  }
  int64_t i = 0;
  double d = 0;
  if (std::holds_alternative<int64_t>(like) && whole(text, i)) return i;
  if (!std::holds_alternative<bool>(like) && !std::holds_alternative<std::string>(like) && real(text, d))
    return d;
  return std::string(text);
}

struct Range {
  double first = 0, last = 0, step = 1;
  bool multiply = false;
};

bool read_range(std::string_view text, Range& range) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return false;
  std::string_view rest = text.substr(dots + 2);
  size_t sign = rest.find_first_of("*+", 1);
  while (sign != std::string_view::npos &&
         (rest[sign - 1] == 'e' || rest[sign - 1] == 'E'))  // 1e+3: a number
    sign = rest.find_first_of("*+", sign + 1);
  if (sign != std::string_view::npos) {
    range.multiply = rest[sign] == '*';
    if (!real(rest.substr(sign + 1), range.step)) return false;
    rest = rest.substr(0, sign);
  }
  return real(text.substr(0, dots), range.first) && real(rest, range.last);
}

void add_range(const Key& key, const Range& range, std::string_view word, const std::string& place,
               std::vector<std::vector<Scalar>>& out) {
  const bool forward = range.last >= range.first;
  const bool grows = range.multiply ? range.step > 1 && range.first > 0 : range.step > 0;
  if (!forward || !grows)
    throw usage_error(fmt::format("the range {} goes nowhere", printable(word)))
        .in(place)
        .hint("1..5, 0..1+0.25 or 8..128*2");
  const size_t before = out.size();
  const double slack = 1e-9 * std::fabs(range.last);  // 0..1+0.1 ends at 1
  for (int64_t i = 0;; ++i) {  // each value on its own, so that steps do not add up their rounding
    const double n = static_cast<double>(i);
    const double value =
        range.multiply ? range.first * std::pow(range.step, n) : range.first + range.step * n;
    if (value > range.last + slack) break;
    if (std::ssize(out) >= kMostOfARange)
      throw usage_error(fmt::format("the range {} has more than {} values", printable(word), kMostOfARange))
          .in(place);
    // As it would be written: 0.1 + 2 * 0.1 is 0.3, the trial that lr=0.3 names.
    out.push_back({checked(key, std::stod(fmt::format("{:.12g}", value)), place)});
  }
  if (out.size() == before + 1 && range.last > range.first)
    throw usage_error(
        fmt::format("the range {} has one value: its next step is beyond its end", printable(word)))
        .in(place)
        .hint("0..1+0.25 or 8..128*2");
}

// Where the first value ends. Options of a kind of attention are part of it: "fastmax:p=2,norm=own_mean" is
// one value.
size_t end_of_value(std::string_view text, bool words) {
  size_t comma = text.find(',');
  while (words && comma != std::string_view::npos &&
         text.substr(0, comma).find(':') != std::string_view::npos) {
    const size_t behind = text.find(',', comma + 1);
    const std::string_view next = text.substr(comma + 1, behind - comma - 1);
    if (next.find('=') == std::string_view::npos || next.find(':') != std::string_view::npos) break;
    comma = behind;
  }
  return comma;
}

}  // namespace

Scalar parse_value(std::string_view text, const Key& key, const std::string& place) {
  return checked(key, read_as(key.otherwise, text), place);
}

Axis parse_override(std::string_view text, const std::vector<Key>& keys) {
  const std::string place = printable(text);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    throw usage_error(fmt::format("expected KEY=VALUES, but got \"{}\"", place)).hint("rank=1,8,64");
  const Key& key = find_key(keys, text.substr(0, equals), place);
  Axis axis{{key.name}, {}};
  bool first = true;
  for (std::string_view rest = text.substr(equals + 1);; first = false) {
    const size_t comma = end_of_value(rest, std::holds_alternative<std::string>(key.otherwise));
    const std::string_view word = rest.substr(0, comma);
    if (word.empty()) throw missing_value(first, comma == std::string_view::npos).in(place);
    Range range;
    const bool counts =
        !std::holds_alternative<std::string>(key.otherwise) && !std::holds_alternative<bool>(key.otherwise);
    if (counts && read_range(word, range))
      add_range(key, range, word, place, axis.points);
    else
      axis.points.push_back({parse_value(word, key, place)});
    if (comma == std::string_view::npos) return axis;
    rest.remove_prefix(comma + 1);
  }
}

std::string to_text(const Axis& axis) {
  std::vector<std::string> points;
  for (const std::vector<Scalar>& point : axis.points) {
    std::vector<std::string> words;
    for (const Scalar& value : point) words.push_back(to_text(value));
    points.push_back(words.size() == 1 ? words[0] : fmt::format("{{{}}}", fmt::join(words, ",")));
  }
  const std::string name =
      axis.names.size() == 1 ? axis.names[0] : fmt::format("{{{}}}", fmt::join(axis.names, ","));
  return fmt::format("{}={}", name, fmt::join(points, ","));
}

}  // namespace rankscope
