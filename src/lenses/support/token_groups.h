// Tokens of samples that are too long for a spectrum of all of them: two disjoint groups of 1,024, drawn
// among those that count. Which ones depends on the seed, the sample and their number alone, on the host and
// on a device alike.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
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

/// The same of samples on a device, all of them long: [2 S, kTokenGroup, d], the two groups of a sample
/// behind one another. `samples` are their numbers in the scan.
PaddedTokens token_groups(const PaddedTokens& t, uint64_t seed, const std::vector<int64_t>& samples);

/// Numbers [n, k] of samples on a device; `of` are their places in the view, one for each.
using MeasureOfSome = std::function<at::Tensor(const PaddedTokens&, const std::vector<int64_t>& of)>;

/// What a lens says of every sample [S, k]: in `whole` of those that are short enough, in `groups` the mean
/// over both groups of the long ones; NaN in the other. Each kind is measured in one call, since one matrix
/// leaves most of a GPU idle.
struct ByLength {  // whoever handles it includes ATen
  at::Tensor whole, groups;
};
ByLength measure_by_length(const PaddedTokens& t, const Packing& packing, uint64_t seed,
                           const MeasureOfSome& measure);

}  // namespace rankscope
