// Memory for a kernel's intermediate results.
#pragma once

#include <cstddef>

namespace rankscope::simd {

/// A buffer of this thread, kept from call to call, aligned to a cache line; the next call may move it. One
/// for a kernel: take all at once.
void* scratch(size_t bytes);

}  // namespace rankscope::simd
