// What the numbers of a request may be. The command line reads its ranges here, and whoever calls the library
// is held to them behind its functions.
#pragma once

#include <cstdint>

namespace rankscope {

struct WholeRange {
  int64_t least, most;
};

constexpr WholeRange kPathsInADraw{1, 100'000}, kRepeats{1, 1000}, kChains{1, 100'000};
constexpr WholeRange kTop{1, 1000}, kApplications{2, 1'000'000}, kProbes{3, 100'000},
    kJacobianProbes{0, 100'000};

/// "--top should be from 1 to 1000, not 0".
void require_within(int64_t value, WholeRange range, const char* option);

}  // namespace rankscope
