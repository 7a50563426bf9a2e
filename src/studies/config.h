// The configuration of one trial: every key a runner knows, defaults filled in, in one canonical order. A
// trial is a pure function of it, so its hash is the trial's name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rankscope {

using Scalar = std::variant<bool, int64_t, double, std::string>;
using Config = std::map<std::string, Scalar>;  // sorted: the canonical order

/// One key of a runner: its type is that of its default. Feeds help, checks and suggestions.
struct Key {
  std::string name;
  Scalar otherwise;
  std::string help;
  double low = -1e300, high = 1e300;      // numbers: the range allowed, ends included
  std::vector<std::string> choices = {};  // texts: the words allowed, empty for any
  /// It came when trials had names already: at its default it is left out of configurations and names.
  bool later = false;
  std::string also = {};  // another word for a text's default, which stands for it from then on
};

/// The value, without the sign of a zero: -0.0 would be a setting, and a trial, of its own.
double plain_zero(double value);

/// "a whole number from 1 to 64", "one of none, unit": what the key may be.
std::string values_text(const Key& key);

/// Checked access; a missing key or another type is a fault of the program, not of the user.
bool flag(const Config& config, std::string_view key);
int64_t integer(const Config& config, std::string_view key);
double number(const Config& config, std::string_view key);  // whole numbers too
const std::string& text(const Config& config, std::string_view key);
/// Of a key that came later; `otherwise` where it has its default.
std::string text_or(const Config& config, const std::string& key, std::string otherwise);

/// "0.003" for 0.003, "64" for 64, "true", "farthest": the shortest text that reads back as the same value.
std::string to_text(const Scalar& value);

/// The number that a configuration has for a key; NaN where it has none.
double number_or_nan(const Config& config, const std::string& key);

/// {"batch":256,"d":64,...}: equal configurations give equal text, on every machine.
std::string canonical(const Config& config);
/// Without keys the types are those of the text.
Config parse_canonical(std::string_view json, const std::vector<Key>& keys = {});

/// The key of that name; otherwise an error that names the nearest ones.
const Key& find_key(const std::vector<Key>& keys, std::string_view name, const std::string& place);

/// What a trial has for a key: a key that came later is not in its configuration where it is at its default.
const Scalar& value_or_default(const Config& config, const std::vector<Key>& keys, const std::string& name,
                               const std::string& place);

/// The value as `key` wants it (1e5 is a whole number), or an error that names the key.
Scalar checked(const Key& key, Scalar value, const std::string& place);

/// The defaults of `keys` overlaid with `given`. A key that is not known (the nearest known one is named), a
/// value of the wrong type, out of range or not among the choices is an error that names the key.
Config complete(const std::vector<Key>& keys, const Config& given, const std::string& place);

/// Sixteen hexadecimal digits that are the same on every machine. No defence against who wants them equal.
std::string short_hash(std::string_view bytes);

/// The hash of the runner's name and the canonical text.
std::string trial_id(std::string_view runner, const Config& config);
bool is_trial_id(std::string_view text);

}  // namespace rankscope
