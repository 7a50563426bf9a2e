// An activation held still: the factor act(h) / h, number by number.
#pragma once

#include "base/tensor_fwd.h"
#include "spec/words.h"

namespace rankscope {

/// At h = 0 the slope act'(0); an activation that does not vanish at 0 has no such factor and is refused.
at::Tensor gain_of(const at::Tensor& h, const at::Tensor& activated, Activation activation);

}  // namespace rankscope
