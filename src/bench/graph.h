// A computation recorded once and replayed without the host: CUDA graphs, where there are some.
#pragma once

#include <functional>
#include <string>

namespace rankscope {

/// On CUDA a replay of what `work` launches, taken after a few plain runs; on the CPU `work` itself. What the
/// work writes must lie in memory that outlives the replay.
std::function<void()> captured(const std::string& device, const std::function<void()>& work);

}  // namespace rankscope
