// Streams that run before the one that ends in the readout: an encoder, for a decoder that reads it.
#pragma once

#include <memory>
#include <string>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "tensors/weights.h"

namespace rankscope {

/// "encoder." in front of the names of a stream's parameters; nothing for the one that ends in the readout.
std::string stream_prefix(const StreamSpec& stream);

/// The stream as a network of its own, for whoever packs or checks what it reads.
ModelSpec stream_alone(const StreamSpec& stream, const ModelSpec& spec);

/// The weights of stream number k of a network, under the names they would have in a network of its own. The
/// whole must outlive it.
std::unique_ptr<WeightSource> stream_source(WeightSource& whole, size_t k);

/// The weights of that branch alone, under the names of a block's own attention ("attn", "ln1").
Weights attention_alone(const Weights& weights, const BranchSpec& branch);

}  // namespace rankscope
