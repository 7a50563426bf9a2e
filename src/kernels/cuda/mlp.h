// The MLP of a block on CUDA's tensor cores in TF32: y = relu(x W_in^T + b_in) W_out^T + b_out, for a stack
// of trials. The hidden layer stays in registers; only one bit of each of its numbers is kept for the
// backward pass, which makes it again where it needs more. Everything is dense, 16-byte aligned, and sums are
// taken in a fixed order.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

constexpr int64_t kMlpWidth = 64;        // of tokens, in and out
constexpr int64_t kMlpHiddenStep = 128;  // the hidden layer is a multiple of it

struct Mlp {
  int64_t trials = 1, rows = 1, hidden = kMlpHiddenStep;
};

/// 32-bit words that hold the signs of the hidden layer.
int64_t mlp_sign_words(const Mlp& m);

/// x, y [trials, rows, 64]; W_in [trials, hidden, 64], b_in [trials, hidden], W_out [trials, 64, hidden],
/// b_out [trials, 64]; either bias may be null. signs may be null: no backward pass will follow.
void mlp_forward(const Mlp& m, const float* x, const float* W_in, const float* b_in, const float* W_out,
                 const float* b_out, float* y, uint32_t* signs, void* stream);

/// dx [trials, rows, 64] from dy [trials, rows, 64]. Weights come turned: W_in_t [trials, 64, hidden],
/// W_out_t [trials, hidden, 64].
void mlp_backward_tokens(const Mlp& m, const float* dy, const float* W_out_t, const float* W_in_t,
                         const uint32_t* signs, float* dx, void* stream);

/// Into how many parts mlp_backward_weights cuts the rows: each gives a sum of its own.
int64_t mlp_splits(const Mlp& m);

/// dW_in and dW_out turned, both [splits, trials, hidden, 64], and db_in [splits, trials, hidden]. b_in may
/// be null.
void mlp_backward_weights(const Mlp& m, const float* x, const float* dy, const float* W_in, const float* b_in,
                          const float* W_out_t, float* dW_in, float* dW_out_t, float* db_in, void* stream);

}  // namespace rankscope::cuda
