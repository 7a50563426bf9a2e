// The two ends of the network: tokens in, distributions out.
#pragma once

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// The residual stream before the first block, [N, d]. `weights` is the part "embed"; the vocabulary table is
/// read row by row from the source.
at::Tensor embed(const Batch& batch, const ModelSpec& spec, const Weights& weights, WeightSource& source);

/// The same from words looked up, patches mapped or points as they are: x [N, ..].
at::Tensor embedded(at::Tensor x, const Batch& batch, const EmbeddingSpec& embedding, const Weights& weights);

/// What the vocabulary matrix multiplies: the stream itself, or the transformed head's [N, w], scaled where
/// the output says so.
at::Tensor before_vocabulary(const at::Tensor& x, const ModelSpec& spec, const Weights& unembed);

/// Logits as the network gives them: what the vocabulary matrix wrote, bent below the output's cap.
at::Tensor capped(const at::Tensor& logits, const OutputSpec& output);

}  // namespace rankscope
