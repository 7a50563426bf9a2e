#include "verdict/sink_key.h"

namespace rankscope {

std::string_view sink_key(const SinkShares& s) {
  const std::array<double, kSinkKeys.size()> shares{s.first, s.last, s.special, s.position, s.token};
  std::string_view name;
  double most = 0.5;
  for (size_t i = 0; i < shares.size(); ++i)
    if (const double counts = shares[i] >= kNearlyAllSamples ? 1 : shares[i]; counts > most)
      most = counts, name = kSinkKeys[i];
  return name;
}

}  // namespace rankscope
