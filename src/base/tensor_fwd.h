// Headers name tensors without paying for torch; only .cpp files include ATen.
#pragma once

namespace at {
class Tensor;
}
