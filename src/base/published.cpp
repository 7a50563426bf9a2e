#include "base/published.h"

#include <charconv>
#include <limits>

namespace rankscope {
namespace {

// What comes before the next `end`, which is taken off `text` with it.
std::string_view take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view out = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return out;
}

}  // namespace

std::vector<std::vector<std::string_view>> published_rows(std::string_view name) {
  std::vector<std::vector<std::string_view>> out;
  std::string_view text = published_csv(name);
  take(text, '\n');
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    out.emplace_back();
    while (!line.empty()) out.back().push_back(take(line, ','));
  }
  return out;
}

double published_number(std::string_view field) {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value;
}

}  // namespace rankscope
