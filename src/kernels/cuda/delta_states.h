// The part of the delta rule that goes from chunk to chunk, on device pointers.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

/// Columns of W and K as this part reads them: zeros behind the width.
constexpr int64_t padded_width(int64_t width) {
  return width <= 16 ? 16 : width <= 32 ? 32 : width <= 64 ? 64 : 128;
}
/// Floats from row to row, so that columns fall into different banks of shared memory.
constexpr int64_t padded_row(int64_t width) { return padded_width(width) + 4; }

/// Of one call: W and K [sequences, chunks, 64, padded row], K times what is kept to the chunk's end, rounded
/// to TF32 where that is allowed; whole [sequences, chunks], what is kept over a chunk;
/// u [sequences * tokens, width_v] and states [sequences, chunks, width_qk, width_v].
struct DeltaStates {
  int64_t sequences, tokens, width_qk, width_v;
  const float *W, *K, *whole;
  float *u, *states;
};

/// In order, for every chunk: states = S, u -= W S, S <- whole S + K^T u.
void delta_states_forward(const DeltaStates& a, bool tf32, void* stream);
/// From the last chunk to the first: u += K S, S <- whole S + states - W^T u; states becomes what S was.
void delta_states_backward(const DeltaStates& a, bool tf32, void* stream);

}  // namespace rankscope::cuda
