#include <charconv>
#include <string_view>

#include "scan/collapse_parts.h"
#include "scan/published.h"

namespace rankscope {
namespace {

// The next field of a line without quotes.
std::string_view field(std::string_view& line) {
  const size_t end = line.find(',');
  const std::string_view out = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return out;
}

double number(std::string_view text) {
  double value = kNone;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::vector<PublishedPoint> published_collapse(const std::string& model, const std::string& weights,
                                               const std::string& variant) {
  std::vector<PublishedPoint> out;
  std::string_view text = published_collapse_csv();
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (field(line) != model || field(line) != weights || field(line) != variant) continue;
    const auto depth = static_cast<size_t>(number(field(line)));
    if (depth >= out.size()) out.resize(depth + 1);
    out[depth].value = number(field(line));
    out[depth].largest_std = number(field(line));
  }
  return out;
}

}  // namespace rankscope
