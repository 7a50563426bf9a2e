// What every head is worth at once, by gradients: one backward pass tells it of all heads.
//
// Taking head h out changes what it carries by -z_h. To first order the loss then changes by -E(g . z_h), g
// its gradient. The first order of a KL divergence is zero; its second is half E(g_y . z_h)^2, with g_y the
// gradient of log p(y) and y drawn from the network's own output at every token: the scores of different
// tokens are independent and have mean zero, so that cross terms vanish.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "importance/evaluator.h"

namespace rankscope {

constexpr int kDraws = 4;

/// By layer, head and sample. A layer whose heads do not write straight into the output map has none.
struct HeadEstimates {
  std::vector<std::vector<std::vector<double>>> loss, kl;
  /// The sums g_y . z_h themselves, [head][sample * draw]: their products over two heads say what both out at
  /// once cost more than each alone.
  std::vector<std::vector<std::vector<double>>> scores;
};

/// The gradient of each direction where heads write, so that other changes of a layer can be judged, too.
struct WriteGradients {
  std::vector<std::vector<std::vector<at::Tensor>>> by_layer;  // [layer][batch][draw] [N, d]
};

/// Three passes for the loss and nine for the divergence, the forward pass that both share counted once.
/// `gradients`, where given, takes those of the draws.
HeadEstimates estimate_heads(Evaluator& evaluator, WriteGradients* gradients = nullptr);

}  // namespace rankscope
