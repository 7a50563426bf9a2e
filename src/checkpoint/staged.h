// Weights that arrive while the device works: the part expected next is read on a thread of its own, through
// two buffers of pinned memory, copied on a stream of its own, and converted and turned on the device.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "tensors/weights.h"

namespace rankscope {

/// `tables` reads the vocabulary's tables, which are asked for by rows. Parts larger than `most_ahead` bytes
/// on the device are read when they are asked for, not before; 0: a third of the memory that is free now. On
/// the CPU everything happens as on a device, without the waiting.
std::unique_ptr<WeightSource> staged_source(const Checkpoint& checkpoint, const std::string& dtype,
                                            const std::string& device, std::unique_ptr<WeightSource> tables,
                                            int64_t most_ahead = 0);

}  // namespace rankscope
