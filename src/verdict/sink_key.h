// What kind of key a head's sink is on, from the shares of samples in which it is one: what the sentence on
// sinks names, and whose value is measured (sink_drained).
#pragma once

#include <string_view>

namespace rankscope {

struct SinkShares {
  double first = 0, last = 0, special = 0;  // sink_first, sink_last, sink_special
  double position = 0, token = 0;           // sink_key_position_share, sink_key_token_share
};

/// A share from here on is that of nearly all samples, and counts as all of them.
constexpr double kNearlyAllSamples = 0.95;

/// "first", "last", "special", "position" or "token": what most samples have the key on, by the largest share
/// and in this order where shares are alike; empty where none does.
std::string_view sink_key(const SinkShares& shares);

}  // namespace rankscope
