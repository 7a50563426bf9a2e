#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/asked_keys.h"
#include "base/error.h"
#include "base/files.h"

namespace rankscope {

namespace {
constexpr int kDeepest = 64;
// Values, names and ends of lists: a vocabulary of a million tokens has half as many. Sixty bytes each, where
// the text has three: memory is bounded by this, not by the size of the file.
constexpr size_t kMostEvents = size_t{1} << 24;

// What a text holds, counted before a tree is made of it. Not by a callback of the parser, which walks
// through a list again at the end of each object in it.
struct Count {
  const std::string& place;
  size_t events = 0;
  int depth = 0;

  bool event() {
    if (++events > kMostEvents)
      throw Error(fmt::format("this JSON holds more than {} values and names", kMostEvents)).in(place);
    return true;
  }
  bool enter() {
    if (++depth > kDeepest)
      throw Error(fmt::format("this JSON is nested more than {} deep", kDeepest)).in(place);
    return event();
  }
  bool leave() {
    --depth;
    return event();
  }

  bool null() { return event(); }
  bool boolean(bool) { return event(); }
  bool number_integer(Json::number_integer_t) { return event(); }
  bool number_unsigned(Json::number_unsigned_t) { return event(); }
  bool number_float(Json::number_float_t, const std::string&) { return event(); }
  bool string(std::string&) { return event(); }
  bool binary(Json::binary_t&) { return event(); }
  bool key(std::string&) { return event(); }
  bool start_object(size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool start_array(size_t) { return enter(); }
  bool end_array() { return leave(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) {
    return false;
  }  // said by the parser
};
}  // namespace

Json parse_json(std::string_view text, const std::string& place) {
  Count count{place};
  Json::sax_parse(text.begin(), text.end(), &count);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& e) {
    const size_t at = std::min<size_t>(e.byte == 0 ? 0 : e.byte - 1, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw Error("this is not valid JSON").in(fmt::format("{}, line {}, byte {}", place, line, at));
  } catch (const Json::out_of_range&) {
    throw Error("this JSON holds a number too large to read").in(place);
  }
}

Json read_json(const std::filesystem::path& path, uint64_t limit) {
  return parse_json(read_file(path, limit), path.string());
}

JsonObject::JsonObject(const Json& value, std::string place) : value_(value), place_(std::move(place)) {
  if (!value_.is_object())
    throw Error(fmt::format("expected a JSON object, but got {}", value_.type_name())).in(place_);
}

bool JsonObject::has(const char* key) const {
  note_asked_key(key);
  const auto it = value_.find(key);
  return it != value_.end() && !it->is_null();
}

bool JsonObject::mentions(const char* key) const { return value_.contains(key); }

const Json& JsonObject::at(const char* key) const {
  if (!has(key)) throw Error(fmt::format("the key \"{}\" is missing", key)).in(place_);
  return *value_.find(key);
}

int64_t JsonObject::integer(const char* key, int64_t low, int64_t high) const {
  const Json& v = at(key);
  // A value above the signed range would wrap when read as int64.
  const bool fits = v.is_number_integer() && !(v.is_number_unsigned() && v.get<uint64_t>() > INT64_MAX);
  if (!fits || v.get<int64_t>() < low || v.get<int64_t>() > high)
    throw Error(fmt::format("\"{}\" should be a whole number from {} to {}, but is {}", key, low, high,
                            printable(v.dump(-1, ' ', true, Json::error_handler_t::replace))))
        .in(place_);
  return v.get<int64_t>();
}

int64_t JsonObject::integer(const char* key, int64_t low, int64_t high, int64_t otherwise) const {
  return has(key) ? integer(key, low, high) : otherwise;
}

double JsonObject::number(const char* key, double low, double high) const {
  const Json& v = at(key);
  const double x = v.is_number() ? v.get<double>() : std::nan("");
  if (!(x >= low && x <= high))
    throw Error(fmt::format("\"{}\" should be a number from {} to {}, but is {}", key, low, high,
                            printable(v.dump(-1, ' ', true, Json::error_handler_t::replace))))
        .in(place_);
  return x;
}

double JsonObject::number(const char* key, double low, double high, double otherwise) const {
  return has(key) ? number(key, low, high) : otherwise;
}

bool JsonObject::boolean(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!at(key).is_boolean()) throw Error(fmt::format("\"{}\" should be true or false", key)).in(place_);
  return at(key).get<bool>();
}

std::string JsonObject::string(const char* key) const {
  if (!at(key).is_string()) throw Error(fmt::format("\"{}\" should be a string", key)).in(place_);
  return at(key).get<std::string>();
}

std::string JsonObject::string(const char* key, std::string otherwise) const {
  return has(key) ? string(key) : otherwise;
}

}  // namespace rankscope
