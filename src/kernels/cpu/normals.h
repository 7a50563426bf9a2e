// Standard normals as a function of (seed, stream, step, index): float twins of base/philox.h, four a
// counter.
#pragma once

#include <cstdint>

namespace rankscope {

/// out[i] = normal number first + i of the stream. Element e takes lane e % 4 of the counter e / 4: words (0,
/// 1) and (2, 3) each make one Box-Muller pair, u = (word + 0.5) / 2^32. The same for every split into calls.
void fill_normals(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, int64_t count, float* out);

}  // namespace rankscope
