#include "text/vocabulary.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rankscope::text {

std::optional<int64_t> read_id(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > kLargestId) return std::nullopt;  // would wrap
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kLargestId)
    return std::nullopt;
  return value.get<int64_t>();
}

Vocabulary::Vocabulary(const Json& object, const std::string& place) {
  if (!object.is_object()) throw Error("\"vocab\" should be an object of tokens and ids").in(place);
  ids_.reserve(object.size());
  tokens_.reserve(object.size());
  for (const auto& [token, id] : object.items()) {
    const auto number = read_id(id);
    if (!number)
      throw Error(fmt::format("the id of the token \"{}\" should be a whole number from 0 to {}",
                              printable(token), kLargestId))
          .in(place);
    add(token, *number, place);
  }
}

void Vocabulary::add(std::string token, int64_t id, const std::string& place) {
  if (token.size() > kLongestToken)
    throw Error(fmt::format("the token \"{}\" has {} bytes, more than the {} allowed", printable(token, 40),
                            token.size(), kLongestToken))
        .in(place);
  const auto [entry, fresh] = ids_.emplace(std::move(token), id);
  if (!fresh) throw Error(fmt::format("the token \"{}\" is there twice", printable(entry->first))).in(place);
  const auto [other, free] = tokens_.emplace(id, entry->first);
  if (!free)
    throw Error(fmt::format("the id {} belongs to two tokens, \"{}\" and \"{}\"", id,
                            printable(other->second), printable(entry->first)))
        .in(place);
}

std::optional<int64_t> Vocabulary::id(std::string_view token) const {
  const auto it = ids_.find(token);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

std::string Vocabulary::token(int64_t id) const {
  const auto it = tokens_.find(id);
  return it == tokens_.end() ? std::string() : std::string(it->second);
}

}  // namespace rankscope::text
