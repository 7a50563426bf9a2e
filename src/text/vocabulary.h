// Tokens and their ids, both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace rankscope::text {

/// Looks strings up by view, without building a std::string.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using StringMap = std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>>;

constexpr int64_t kLargestId = INT32_MAX;  // ids go into 32-bit embeddings lookups everywhere
constexpr size_t kLongestToken = 4096;     // bytes; bounds the walk of a trie at each position

/// A whole number from 0 to kLargestId, or nothing.
std::optional<int64_t> read_id(const Json& value);

class Vocabulary {
 public:
  Vocabulary() = default;
  /// {"token": id, ...}. Refuses ids that are not whole numbers from 0, and ids given twice.
  Vocabulary(const Json& object, const std::string& place);

  /// Throws if the token is too long, or its id taken by another one.
  void add(std::string token, int64_t id, const std::string& place);

  std::optional<int64_t> id(std::string_view token) const;
  std::string token(int64_t id) const;  // "" when there is none
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  const StringMap& ids() const { return ids_; }

 private:
  StringMap ids_;
  std::unordered_map<int64_t, std::string_view>
      tokens_;  // views of the keys above, which stay where they are
};

}  // namespace rankscope::text
