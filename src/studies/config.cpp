#include "studies/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"

namespace rankscope {
namespace {

constexpr double kLargestWhole = 0x1p53;  // above it not every whole number is a double

template <class T>
const T& typed(const Config& config, std::string_view key) {
  const auto found = config.find(std::string(key));
  if (found == config.end()) throw Error(fmt::format("the configuration has no key \"{}\"", key));
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) throw Error(fmt::format("the key \"{}\" has another type", key));
  return *value;
}

const char* expected_type(const Scalar& value) {
  static constexpr std::array<const char*, 4> kNames{"true or false", "a whole number", "a number", "a word"};
  return kNames[value.index()];
}

// Whether a text that stands in quotes would be such a value without them.
bool reads_as(const Scalar& like, const std::string& text) {
  if (std::holds_alternative<bool>(like)) return text == "true" || text == "false";
  double number = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc{} && rest == text.data() + text.size() && std::isfinite(number);
}

// A whole number is a number, and 1e5 is a whole one; nothing else changes its type.
bool same_type(const Scalar& like, Scalar& value) {
  if (like.index() == value.index()) return true;
  if (std::holds_alternative<double>(like) && std::holds_alternative<int64_t>(value)) {
    value = static_cast<double>(std::get<int64_t>(value));
    return true;
  }
  if (std::holds_alternative<int64_t>(like) && std::holds_alternative<double>(value)) {
    const double number = std::get<double>(value);
    if (std::floor(number) != number || std::fabs(number) > kLargestWhole) return false;
    value = static_cast<int64_t>(number);
    return true;
  }
  return false;
}

Scalar from_json(const Json& value, const std::string& name) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  throw Error(fmt::format("\"{}\" has neither a number nor a word", printable(name))).in("a configuration");
}

}  // namespace

double plain_zero(double value) { return value == 0 ? 0.0 : value; }

bool flag(const Config& config, std::string_view key) { return typed<bool>(config, key); }
int64_t integer(const Config& config, std::string_view key) { return typed<int64_t>(config, key); }
const std::string& text(const Config& config, std::string_view key) {
  return typed<std::string>(config, key);
}
double number(const Config& config, std::string_view key) {
  const auto found = config.find(std::string(key));
  if (found != config.end() && std::holds_alternative<int64_t>(found->second))
    return static_cast<double>(std::get<int64_t>(found->second));
  return typed<double>(config, key);
}

std::string to_text(const Scalar& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const int64_t* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const double* d = std::get_if<double>(&value)) return fmt::format("{}", *d);
  return std::get<std::string>(value);
}

double number_or_nan(const Config& config, const std::string& key) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nan("");
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&found->second);
  return real == nullptr ? std::nan("") : *real;
}

std::string canonical(const Config& config) {
  std::string out = "{";
  for (const auto& [name, value] : config) {
    if (out.size() > 1) out += ',';
    const std::string* word = std::get_if<std::string>(&value);
    out += fmt::format("{}:{}", Json(name).dump(), word != nullptr ? Json(*word).dump() : to_text(value));
  }
  return out + "}";
}

Config parse_canonical(std::string_view json, const std::vector<Key>& keys) {
  const Json object = parse_json(json, "a configuration");
  if (!object.is_object()) throw Error("expected an object").in("a configuration");
  Config given;
  for (const auto& [name, value] : object.items()) given[name] = from_json(value, name);
  return keys.empty() ? given : complete(keys, given, "a configuration");
}

Scalar checked(const Key& key, Scalar value, const std::string& place) {
  const auto refuse = [&](const std::string& expected) {
    return usage_error(
               fmt::format("{}: expected {}, but got {}", key.name, expected, printable(to_text(value))))
        .in(place);
  };
  if (!same_type(key.otherwise, value)) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word != nullptr && reads_as(key.otherwise, *word))
      throw usage_error(fmt::format("{}: expected {}, but got the text \"{}\"", key.name,
                                    expected_type(key.otherwise), *word))
          .in(place)
          .hint(fmt::format("without the quotes: {} = {}", key.name, *word));
    throw refuse(expected_type(key.otherwise));
  }
  if (double* real = std::get_if<double>(&value)) *real = plain_zero(*real);
  if (const std::string* word = std::get_if<std::string>(&value)) {
    if (!key.also.empty() && *word == key.also) return key.otherwise;
    if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), *word) == key.choices.end())
      throw refuse(values_text(key)).hint(nearest(*word, key.choices, 1).front());
  } else if (!std::holds_alternative<bool>(value)) {
    const double n = std::holds_alternative<double>(value) ? std::get<double>(value)
                                                           : static_cast<double>(std::get<int64_t>(value));
    if (!(n >= key.low && n <= key.high))  // NaN too
      throw refuse(values_text(key));
  }
  return value;
}

std::string values_text(const Key& key) {
  if (!key.choices.empty()) return fmt::format("one of {}", fmt::join(key.choices, ", "));
  const std::string type = expected_type(key.otherwise);
  const bool numbers =
      std::holds_alternative<int64_t>(key.otherwise) || std::holds_alternative<double>(key.otherwise);
  const bool from = numbers && key.low > -1e300, to = numbers && key.high < 1e300;
  if (from && to) return fmt::format("{} from {} to {}", type, key.low, key.high);
  if (from) return fmt::format("{} of at least {}", type, key.low);
  return to ? fmt::format("{} of at most {}", type, key.high) : type;
}

const Key& find_key(const std::vector<Key>& keys, std::string_view name, const std::string& place) {
  std::vector<std::string> known;
  for (const Key& key : keys) {
    if (key.name == name) return key;
    known.push_back(key.name);
  }
  throw unknown_name("key", name, known, "rankscope study keys RUNNER").in(place);
}

const Scalar& value_or_default(const Config& config, const std::vector<Key>& keys, const std::string& name,
                               const std::string& place) {
  const auto said = config.find(name);
  return said != config.end() ? said->second : find_key(keys, name, place).otherwise;
}

std::string text_or(const Config& config, const std::string& key, std::string otherwise) {
  return config.count(key) > 0 ? text(config, key) : std::move(otherwise);
}

Config complete(const std::vector<Key>& keys, const Config& given, const std::string& place) {
  Config out;
  for (const Key& key : keys)
    if (!key.later) out[key.name] = key.otherwise;
  for (const auto& [name, value] : given) {
    const Key& key = find_key(keys, name, place);
    out[name] = checked(key, value, place);
    if (key.later && out[name] == key.otherwise) out.erase(name);
  }
  return out;
}

// FNV-1a with a final mix. Not SHA-256: a trial must have the same name where OpenSSL is missing.
std::string short_hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return fmt::format("{:016x}", hash ^ (hash >> 31));
}

std::string trial_id(std::string_view runner, const Config& config) {
  return short_hash(fmt::format("{}\n{}", runner, canonical(config)));
}

bool is_trial_id(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace rankscope
