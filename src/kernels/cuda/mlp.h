// The MLP of a block on Hopper's tensor cores in TF32: y = relu(x W_in^T + b_in) W_out^T + b_out, for a stack
// of trials. The hidden layer stays in registers; one bit of each of its numbers is kept for the gradient of
// x, and the gradients of the weights make it again. Everything is dense and 16-byte aligned, and sums are
// taken in a fixed order.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

constexpr int64_t kMlpWidth = 64;        // of tokens, in and out
constexpr int64_t kMlpHiddenStep = 256;  // the hidden layer is a multiple of it
constexpr int64_t kMlpRowStep = 32;  // where the gradients of the weights see rows, they come in full steps

struct Mlp {
  int64_t trials = 1, rows = 1, hidden = kMlpHiddenStep;
  int64_t padded_rows() const { return (rows + kMlpRowStep - 1) / kMlpRowStep * kMlpRowStep; }
};

/// x [trials, rows, columns], trials `trial` floats apart, rounded to TF32: as it is, [trials, padded,
/// columns] (may be null), and turned, [trials, columns, padded]; zero where there is no row. padded and
/// columns are multiples of 32.
void mlp_prepare(int64_t trials, int64_t rows, int64_t padded, int64_t columns, const float* x, int64_t trial,
                 float* rounded, float* turned, void* stream);

/// 32-bit words that hold the signs of the hidden layer.
int64_t mlp_sign_words(const Mlp& m);

/// x, y [trials, rows, 64]. Weights rounded: W_in [trials, hidden, 64], W_out [trials, 64, hidden]; b_in
/// [trials, hidden], b_out [trials, 64]; either bias may be null.
void mlp_forward(const Mlp& m, const float* x, const float* W_in, const float* b_in, const float* W_out,
                 const float* b_out, float* y, uint32_t* signs, void* stream);

/// dx [trials, rows, 64] from dy [trials, rows, 64] and the turned weights: W_in_t [trials, 64, hidden],
/// W_out_t [trials, hidden, 64].
void mlp_backward_tokens(const Mlp& m, const float* dy, const float* W_out_t, const float* W_in_t,
                         const uint32_t* signs, float* dx, void* stream);

/// Into how many parts mlp_backward_weights cuts the rows: each gives a sum of its own.
int64_t mlp_splits(const Mlp& m);

struct MlpTokens {
  const float *rounded, *turned;  // as mlp_prepare makes them
};

/// dW_in [splits, trials, hidden, 64], dW_out [splits, trials, 64, hidden] and db_in [splits, trials,
/// hidden]; b_in may be null.
void mlp_backward_weights(const Mlp& m, MlpTokens x, MlpTokens dy, const float* W_in, const float* b_in,
                          const float* W_out_t, float* dW_in, float* dW_out, float* db_in, void* stream);

}  // namespace rankscope::cuda
