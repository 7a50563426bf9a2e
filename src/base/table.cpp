#include "base/table.h"

#include <mutex>
#include <unordered_set>

namespace rankscope {

Name::Name(std::string_view text) {
  static const std::string none;
  if (text.empty()) {  // most rows have an empty name: no lock for it
    text_ = &none;
    return;
  }
  static std::mutex mutex;
  static std::unordered_set<std::string> pool;  // node based: addresses stay
  const std::lock_guard lock(mutex);
  text_ = &*pool.emplace(text).first;
}

const Row* ResultTable::find(std::string_view variant, std::string_view metric, int layer, int head,
                             std::string_view tokens, std::string_view site) const {
  for (const Row& r : rows)
    if (r.layer == layer && r.head == head && r.metric == metric && r.variant == variant &&
        r.tokens == tokens && (site.empty() || r.site == site))
      return &r;
  return nullptr;
}

}  // namespace rankscope
