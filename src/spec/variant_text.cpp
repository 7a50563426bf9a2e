#include "spec/variant_text.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rankscope {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::string_view kValue = "abcdefghijklmnopqrstuvwxyz0123456789_.+-";

bool is_word(std::string_view text, std::string_view letters) {
  return !text.empty() && text.size() <= 64 && text.find_first_not_of(letters) == std::string_view::npos;
}

}  // namespace

VariantText read_variant(std::string_view text) {
  const auto refuse = [&] {
    return usage_error(fmt::format("\"{}\" is no attention variant", printable(text)))
        .hint("a name, and options behind a colon: fastmax:p=2");
  };
  const size_t colon = text.find(':');
  VariantText out{std::string(text.substr(0, colon))};
  if (!is_word(out.name, kLetters)) throw refuse();
  if (colon == std::string_view::npos) return out;
  const std::string_view options = text.substr(colon + 1);
  for (size_t at = 0; at <= options.size();) {
    const std::string_view one = options.substr(at, options.find(',', at) - at);
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos || !is_word(one.substr(0, equals), kLetters) ||
        !is_word(one.substr(equals + 1), kValue) ||
        !out.options.emplace(one.substr(0, equals), one.substr(equals + 1)).second)
      throw refuse();
    at += one.size() + 1;
  }
  return out;
}

}  // namespace rankscope
