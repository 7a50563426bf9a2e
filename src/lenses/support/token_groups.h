// Tokens of samples that are too long for a spectrum of all of them: two disjoint groups of 1,024, drawn
// among those that count. Which ones depends on the seed, the sample and their number alone, on the host and
// on a device alike.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lenses/support/on_device.h"
#include "lenses/support/tokens.h"

namespace rankscope {

constexpr int64_t kLongestTokens = 2048;  // longer samples are read through groups
constexpr int64_t kTokenGroup = 1024;

/// The groups as samples of their own; one is empty where too few tokens count.
struct TokenGroup {
  std::vector<double> x;
  Tokens tokens = {};
};
std::array<TokenGroup, 2> token_groups(const Tokens& t, uint64_t seed, int64_t sample);

/// The same of one sample on a device: [2, kTokenGroup, d].
PaddedTokens token_groups(const PaddedTokens& one, uint64_t seed, int64_t sample);

/// Whether a sample of the view is longer than kLongestTokens.
bool any_long(const Packing& packing);

/// Sample s of a view alone.
PaddedTokens one_sample(const PaddedTokens& t, int64_t s, int64_t length);

}  // namespace rankscope
