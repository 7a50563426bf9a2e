// The kernels of attention over short contexts, for tensors of any stride: pieces over threads on the CPU,
// launches on CUDA. Nothing is allocated here and there is no gradient; ops/small_attention.h is the
// operator.
#pragma once

#include "base/tensor_fwd.h"
#include "kernels/small_attention.h"
#include "ops/small_attention.h"

namespace rankscope {

/// One operand with its strides; rows must be dense inside.
struct AttentionOperand {
  at::Tensor data;  // [trials, rows, columns]
  Rows rows;
};
AttentionOperand attention_operand(at::Tensor x);

struct AttentionSizes {
  int64_t queries, keys;
};

void attention_forward_kernel(const HeadShape& shape, const AttentionOperand& q, const AttentionOperand& k,
                              const AttentionOperand& v, AttentionOperand& out, AttentionSizes sizes);
/// dv may have no tensor: then it is not computed.
void attention_backward_kernel(const HeadShape& shape, const AttentionOperand& q, const AttentionOperand& k,
                               const AttentionOperand& v, const AttentionOperand& dout, AttentionOperand& dq,
                               AttentionOperand& dk, AttentionOperand& dv, AttentionSizes sizes);

}  // namespace rankscope
