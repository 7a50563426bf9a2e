// What a part's program (parts/program.h) does to the channels of a token: activations, and the two
// operations by which heads share numbers.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"
#include "spec/words.h"

namespace rankscope {

/// `in_place`: x itself is used up where the function allows it.
at::Tensor apply_activation(at::Tensor x, Activation activation, bool in_place = true);

/// In each of `heads` groups the numbers of `shared` [.., n], which all have alike, and then its part of
/// `own`.
at::Tensor set_beside(const at::Tensor& shared, const at::Tensor& own, int64_t heads);

/// Every `chunk` numbers of x [.., n], `times` times side by side.
at::Tensor repeat_chunks(const at::Tensor& x, int64_t times, int64_t chunk);

}  // namespace rankscope
