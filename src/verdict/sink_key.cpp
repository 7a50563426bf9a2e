#include "verdict/sink_key.h"

#include <utility>

namespace rankscope {

std::string_view sink_key(const SinkShares& s) {
  using Named = std::pair<std::string_view, double>;
  Named most{"", 0.5};
  for (const auto& [name, share] : {Named{"first", s.first},
                                    {"last", s.last},
                                    {"special", s.special},
                                    {"position", s.position},
                                    {"token", s.token}})
    if (const double counts = share >= kNearlyAllSamples ? 1 : share; counts > most.second)
      most = {name, counts};
  return most.first;
}

}  // namespace rankscope
