// Randomness as a function: every random number is philox(seed, stream, step, index), so it does not depend
// on the number of threads, the batch, or a restart. Philox4x32-10 of Salmon et al. 2011 ("Parallel random
// numbers: as easy as 1, 2, 3").
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace rankscope {

/// Four 32-bit words for a 128-bit counter and a 64-bit key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// One stream of random numbers: the key is the seed, the counter is (index, step, stream).
struct Philox {
  __extension__ typedef unsigned __int128 Wide;
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t step = 0;

  constexpr std::array<uint32_t, 4> words(uint64_t index) const {
    return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), step, stream},
                      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  /// Uniform in (0, 1), never 0 or 1.
  double uniform(uint64_t index) const {
    const auto w = words(index);
    return ((((uint64_t{w[0]} << 32) | w[1]) >> 11) + 0.5) * 0x1p-53;
  }
  /// Uniform whole number in [0, n): the multiply-shift of Lemire; its bias is below n / 2^64.
  uint64_t below(uint64_t n, uint64_t index) const {
    const auto w = words(index);
    return static_cast<uint64_t>((static_cast<Wide>((uint64_t{w[0]} << 32) | w[1]) * n) >> 64);
  }
  /// Standard normal by Box-Muller.
  double normal(uint64_t index) const {
    const auto w = words(index);
    const double u = ((((uint64_t{w[0]} << 32) | w[1]) >> 11) + 0.5) * 0x1p-53;
    const double v = ((((uint64_t{w[2]} << 32) | w[3]) >> 11) + 0.5) * 0x1p-53;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }
};

}  // namespace rankscope
