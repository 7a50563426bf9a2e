// JSON from outside: parsed with a place for every complaint, read through checked getters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope {

using Json = nlohmann::json;

/// Parses `text`; `place` (a file name) is named in the error together with line and byte. Nesting deeper
/// than any file we read is refused: it would cost seventy times its size in memory.
Json parse_json(std::string_view text, const std::string& place);

/// Reads a whole JSON file of at most `limit` bytes.
Json read_json(const std::filesystem::path& path, uint64_t limit = 1ull << 30);

/// Checked access to the members of one object. A missing member gives the default where there is one and an
/// error where there is none; a member of the wrong type or out of range is always an error that names the
/// key.
class JsonObject {
 public:
  JsonObject(const Json& value, std::string place);

  bool has(const char* key) const;       // present and not null
  bool mentions(const char* key) const;  // present, perhaps null
  const Json& at(const char* key) const;
  int64_t integer(const char* key, int64_t low, int64_t high) const;
  int64_t integer(const char* key, int64_t low, int64_t high, int64_t otherwise) const;
  double number(const char* key, double low, double high) const;
  double number(const char* key, double low, double high, double otherwise) const;
  bool boolean(const char* key, bool otherwise) const;
  std::string string(const char* key) const;
  std::string string(const char* key, std::string otherwise) const;
  const std::string& place() const { return place_; }

 private:
  const Json& value_;
  std::string place_;
};

}  // namespace rankscope
