// Streams that run before the one that ends in the readout: an encoder, for a decoder that reads it.
#pragma once

#include <string>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "tensors/weights.h"

namespace rankscope {

/// "encoder." in front of the names of a stream's parameters; nothing for the one that ends in the readout.
std::string stream_prefix(const StreamSpec& stream);

/// The stream as a network of its own, for whoever packs or checks what it reads.
ModelSpec stream_alone(const StreamSpec& stream, const ModelSpec& spec);

/// What enters the stream's first block, [N, d].
at::Tensor embed_stream(const Batch& batch, const StreamSpec& stream, WeightSource& source);

}  // namespace rankscope
