// Sizes beyond which a description is absurd: they keep a value from outside from costing memory.
#pragma once

#include <cstdint>

namespace rankscope {

inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = 1 << 14;
inline constexpr int64_t kMaxHeadWidth = 1 << 14;
inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxMlpWidth = 1 << 22;
inline constexpr int64_t kMaxVocabulary = 1 << 24;
inline constexpr int64_t kMaxPositions = 1 << 24;
inline constexpr int64_t kMaxTypes = 1 << 16;
inline constexpr int64_t kMaxTokens = 1 << 10;  // learned ones in front of patches

}  // namespace rankscope
