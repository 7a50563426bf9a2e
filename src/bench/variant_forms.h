// The forms of attention that have a running kernel: ours, the same in chunks by LibTorch's operations, the
// whole matrix to verify both against, and what they cost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"

namespace rankscope {

/// q, k, v [heads, tokens, width], and two numbers a token between 0 and 1: written, kept.
using VariantOperands = std::vector<at::Tensor>;
using VariantForm = std::function<at::Tensor(const VariantOperands&)>;

struct RunningForm {
  std::string name;
  int64_t width;       // of a head
  int64_t state_rows;  // C(width + p, p)
  size_t operands;     // of the five, from the first on
  VariantForm ours, composed, whole;
  double flops[2], bytes[2];  // a token and head, forward and backward
};

const std::vector<RunningForm>& running_forms();

/// Softmax over the same q, k and v: the library's, and in tiles of rows that see no later key.
std::vector<VariantForm> softmax_forms();

}  // namespace rankscope
