#include "verdict/sink_key.h"

#include <algorithm>
#include <utility>

namespace rankscope {

std::string_view sink_key(const SinkShares& s) {
  constexpr double kMost = 0.5;
  using Named = std::pair<std::string_view, double>;
  for (const auto& [name, share] : {Named{"first", s.first}, {"last", s.last}, {"special", s.special}})
    if (share >= kNearlyAllSamples || (share > kMost && share >= std::max(s.position, s.token))) return name;
  if (s.position > kMost && s.position >= s.token) return "position";
  return s.token > kMost ? "token" : "";
}

}  // namespace rankscope
