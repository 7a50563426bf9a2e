// From stored bytes to a parameter: what every source of weights from a checkpoint does. Included by files
// that know torch.
#pragma once

#include "base/tensor_fwd.h"
#include "checkpoint/checkpoint.h"

namespace rankscope {

/// The file's bytes as a tensor [..] of the stored type; copied where they are not aligned for it.
at::Tensor view_of(const SafetensorsFile& file, const TensorEntry& entry);

/// All that is stored of a place: several tensors lie one below the other.
at::Tensor stored_tensor(const Checkpoint::Place& place);
/// Gives the pages behind it back.
void release_pages(const Checkpoint::Place& place);

/// Bytes [n] on any device as the tensor they store.
at::Tensor as_stored(const at::Tensor& bytes, const TensorEntry& entry);

/// The stored tensor turned into [out, in] and cut to the parameter's own rows; still in the file's type.
at::Tensor oriented(const at::Tensor& stored, const Checkpoint::Place& place, const Parameter& p);

/// What `oriented` gave, in the type it is computed in, as the parameter it is.
at::Tensor finished(const at::Tensor& oriented, const Checkpoint::Place& place, const Parameter& p);

/// A vocabulary's table as stored: [rows, width].
at::Tensor table_of(const at::Tensor& stored, const Checkpoint::Place& place);

/// Throws: the weights of that place hold NaN or Inf.
[[noreturn]] void refuse_weights(const Checkpoint::Place& place);

}  // namespace rankscope
