// Work shared out over threads in tasks, each of which stays on its thread.
#pragma once

#include <cstdint>
#include <functional>

namespace rankscope {

/// Calls work(task) for every task; what a task throws is thrown again behind the last.
void each_in_parallel(int threads, int64_t tasks, const std::function<void(int64_t task)>& work);

}  // namespace rankscope
