#include "bench/graph.h"

namespace rankscope {

std::function<void()> captured(const std::string&, const std::function<void()>& work) { return work; }

void finish(const std::string&) {}

}  // namespace rankscope
