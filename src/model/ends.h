// The two ends of the network: tokens in, distributions out.
#pragma once

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "model/spec.h"
#include "model/weights.h"

namespace rankscope {

/// The residual stream before the first block, [N, d]. `weights` is the part "embed"; the vocabulary table is
/// read row by row from the source.
at::Tensor embed(const Batch& batch, const ModelSpec& spec, const Weights& weights, WeightSource& source);

/// What the vocabulary matrix multiplies: the stream itself, or the transformed head's [N, w].
at::Tensor before_vocabulary(const at::Tensor& x, const ModelSpec& spec, const Weights& unembed);

}  // namespace rankscope
