#include "ops/stream.h"

namespace rankscope {

void* current_stream(const at::Tensor&) { return nullptr; }

}  // namespace rankscope
