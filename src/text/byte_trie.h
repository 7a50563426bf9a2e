// A trie over bytes, laid out breadth first: the children of a node are neighbours, sorted by their byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope::text {

class ByteTrie {
 public:
  using Node = uint32_t;
  static constexpr Node kRoot = 0;  // no node's child, hence also "none"

  ByteTrie() : nodes_(1) {}
  /// Values are not negative. Of equal keys the first one stays; empty keys are left out.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int64_t>> entries);

  /// The child of `node` along `byte`, or kRoot.
  Node step(Node node, char byte) const;
  /// The value of the key that ends here, or -1.
  int64_t value(Node node) const { return nodes_[node].value; }

 private:
  struct Entry {
    uint32_t first = 0;  // the first child
    uint16_t children = 0;
    unsigned char byte = 0;
    int64_t value = -1;
  };
  std::vector<Entry> nodes_;
};

}  // namespace rankscope::text
