// Work shared out over threads in units, each of which stays on its thread.
#pragma once

#include <cstdint>
#include <functional>

namespace rankscope {

/// Calls work(unit) for every unit; what a unit throws is thrown again behind the last.
void each_unit(int threads, int64_t units, const std::function<void(int64_t unit)>& work);

}  // namespace rankscope
