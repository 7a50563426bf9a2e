// What CUDA adds to a measurement: a computation recorded once and replayed without the host, and waiting.
#pragma once

#include <functional>
#include <string>

namespace rankscope {

/// On CUDA a replay of what `work` launches, taken after a few plain runs; on the CPU `work` itself. What the
/// work writes must lie in memory that outlives the replay.
std::function<void()> captured(const std::string& device, const std::function<void()>& work);

/// Waits until everything launched on the device is done.
void finish(const std::string& device);

}  // namespace rankscope
