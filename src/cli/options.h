// Checks of option values, in words that say what was expected and what came.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/commas.h"
#include "base/error.h"

namespace rankscope {

/// CLI11 alone takes 99999999999999999999 and, where no sign belongs, -1.
inline CLI::Validator whole_number(int64_t least, int64_t most = INT64_MAX) {
  const auto check = [=](std::string& text) -> std::string {
    int64_t value = 0;
    const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault == std::errc{} && rest == text.data() + text.size() && value >= least && value <= most)
      return {};
    const std::string range =
        most == INT64_MAX ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most);
    return fmt::format("expected a whole number {}, but got \"{}\"", range, printable(text));
  };
  return {check, ""};
}

/// "4GiB" or "512MiB" to a number of bytes.
inline CLI::Validator size_in_bytes() {
  const auto check = [](std::string& text) -> std::string {
    int64_t number = 0;
    const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
    const int shift = unit == "MiB" ? 20 : unit == "GiB" ? 30 : unit == "TiB" ? 40 : 0;
    if (fault == std::errc{} && shift > 0 && number > 0 && number < (int64_t{1} << 20)) {
      text = std::to_string(number << shift);
      return {};
    }
    return fmt::format("expected a size as 4GiB or 512MiB, but got \"{}\"", printable(text));
  };
  return {check, ""};
}

/// Finite and not below zero; in decimal digits.
inline bool parse_not_negative(const std::string& text, double& value) {
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && rest == text.data() + text.size() && std::isfinite(value) && value >= 0;
}

inline CLI::Validator number_from(double least = 0, double most = INFINITY) {
  const auto check = [least, most](std::string& text) -> std::string {
    double value = 0;
    if (parse_not_negative(text, value) && value >= least && value <= most) return {};
    return std::isinf(most)
               ? fmt::format("expected a number of at least {}, but got \"{}\"", least, printable(text))
               : fmt::format("expected a number from {} to {}, but got \"{}\"", least, most, printable(text));
  };
  return {check, ""};
}

/// A name of a file or a folder that is one: "" comes from a variable that was never set.
inline CLI::Validator some_name() {
  const auto check = [](std::string& text) -> std::string {
    return text.empty() ? "expected a name, but got \"\"" : "";
  };
  return {check, ""};
}

inline CLI::Validator between_zero_and_one() {
  const auto check = [](std::string& text) -> std::string {
    double value = 0;
    if (parse_not_negative(text, value) && value <= 1) return {};
    return fmt::format("expected a number from 0 to 1, but got \"{}\"", printable(text));
  };
  return {check, ""};
}

/// The words of "4,8,16".
inline std::vector<std::string> split_commas(const std::string& option, const std::string& text) {
  std::vector<std::string> out;
  for (size_t from = 0, comma = 0; comma != std::string::npos; from = comma + 1) {
    comma = text.find(',', from);
    out.push_back(text.substr(from, comma - from));
    if (out.back().empty())
      throw missing_value(from == 0, comma == std::string::npos).in(option + " " + printable(text));
  }
  return out;
}

/// An option with commas between its values, of which `each` is checked. (CLI11's own delimiter drops a
/// missing value without a word.)
template <class Value>
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<Value>& values,
                      const std::string& help, const CLI::Validator& each) {
  const auto check = [name, each](std::string& text) -> std::string {
    for (std::string& word : split_commas(name, text))
      if (std::string fault = each(word); !fault.empty()) return fault;
    return {};
  };
  const auto take = [name, &values](const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      for (const std::string& word : split_commas(name, text))
        if (!CLI::detail::lexical_cast(word, values.emplace_back())) throw CLI::ConversionError(word, name);
  };
  return app.add_option_function<std::vector<std::string>>(name, take, help)
      ->allow_extra_args(false)  // what stands behind it may be a file
      ->check(CLI::Validator(check, ""));
}

}  // namespace rankscope
