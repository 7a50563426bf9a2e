// What kind of key a head's sink is on, from the shares of samples in which it is one: what the sentence on
// sinks names, and whose value is measured (sink_drained).
#pragma once

#include <array>
#include <string_view>

namespace rankscope {

/// The kinds, in the order in which they are named where shares are alike.
constexpr std::array<std::string_view, 5> kSinkKeys{"first", "last", "special", "position", "token"};

struct SinkShares {
  double first = 0, last = 0, special = 0;  // sink_first, sink_last, sink_special
  double position = 0, token = 0;           // sink_key_position_share, sink_key_token_share
};

/// A share from here on is that of nearly all samples, and counts as all of them.
constexpr double kNearlyAllSamples = 0.95;

/// What most samples have the key on, by the largest share; empty where none does.
std::string_view sink_key(const SinkShares& shares);

}  // namespace rankscope
