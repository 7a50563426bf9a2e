// What an operator with a gradient of its own is made of.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

namespace rankscope {

using Variables = torch::autograd::variable_list;

}  // namespace rankscope
