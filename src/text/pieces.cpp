#include "text/pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace rankscope::text {

namespace {
constexpr size_t kLongestText = 128u << 20;
constexpr size_t kMostMembers = 256;

// Members of members too: lists inside lists would get around the limit. The depth of the file is bounded.
size_t count_members(const Json& list, const char* key) {
  size_t count = list.size();
  for (const Json& member : list)
    if (member.is_object() && member.contains(key) && member[key].is_array())
      count += count_members(member[key], key);
  return count;
}

}  // namespace

void refuse(std::string_view stage, const std::string& name, const std::vector<std::string>& known,
            const std::string& place) {
  throw Error(fmt::format("the {} \"{}\" is not supported", stage, printable(name)))
      .in(place)
      .hint(fmt::format("the known ones are {}", fmt::join(known, ", ")));
}

const Json& sequence_members(const JsonObject& object, const char* key) {
  const Json& members = object.at(key);
  if (!members.is_array()) throw Error(fmt::format("\"{}\" should be a list", key)).in(object.place());
  if (const size_t count = count_members(members, key); count > kMostMembers)
    throw Error(fmt::format("\"{}\" has {} members, more than the {} allowed", key, count, kMostMembers))
        .in(object.place());
  return members;
}

void check_length(size_t bytes) {
  if (bytes > kLongestText)
    throw Error(fmt::format("the normalizer makes the text longer than {} MiB", kLongestText >> 20))
        .in("tokenizer.json")
        .hint("check the replacements of its normalizer, or pass shorter texts");
}

}  // namespace rankscope::text
