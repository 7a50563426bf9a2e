#include "text/byte_trie.h"

#include <algorithm>

namespace rankscope::text {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int64_t>> entries) : nodes_(1) {
  std::erase_if(entries, [](const auto& entry) { return entry.first.empty(); });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                entries.end());

  // The keys below a node are a range of the sorted list; the ranges wait in the order of their nodes.
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges{{0, entries.size(), 0}};
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    if (begin < end && entries[begin].first.size() == depth) nodes_[node].value = entries[begin++].second;
    nodes_[node].first = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      size_t last = begin;
      while (last < end && entries[last].first[depth] == byte) ++last;
      nodes_.push_back({0, 0, static_cast<unsigned char>(byte), -1});
      ranges.push_back({begin, last, depth + 1});
      ++nodes_[node].children;
      begin = last;
    }
  }
}

ByteTrie::Node ByteTrie::step(Node node, char byte) const {
  const auto wanted = static_cast<unsigned char>(byte);
  const auto first = nodes_.begin() + nodes_[node].first;
  const auto last = first + nodes_[node].children;
  const auto it = std::lower_bound(first, last, wanted,
                                   [](const Entry& entry, unsigned char b) { return entry.byte < b; });
  return it == last || it->byte != wanted ? kRoot : static_cast<Node>(it - nodes_.begin());
}

}  // namespace rankscope::text
