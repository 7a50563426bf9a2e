#include "model/batch_tensors.h"

namespace rankscope {

const BatchTensors& tensors_of(const Batch& batch, const at::Tensor& like) {
  if (!batch.tensors || batch.tensors->positions.device() != like.device()) {
    const auto there = [&](const std::vector<int64_t>& values) {
      return at::tensor(values, at::kLong).to(like.device());
    };
    batch.tensors = std::make_shared<const BatchTensors>(
        BatchTensors{there(batch.positions), batch.has_types ? there(batch.types) : at::Tensor()});
  }
  return *batch.tensors;
}

}  // namespace rankscope
