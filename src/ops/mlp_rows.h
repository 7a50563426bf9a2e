// The MLP of one trial on raw pointers, for the operator and for a training step without autograd. The hidden
// layer is made and used up piece by piece: a piece is some rows by some hidden units, small enough to stay
// in the cache between the product that makes it and those that read it. The backward pass needs every piece
// again; they are kept one behind the other, because making them anew would cost a seventh product.
#pragma once

#include <cstdint>

namespace rankscope {

/// Dense operands: x [rows, in], W_in [hidden, in], b_in [hidden] or null, W_out [out, hidden].
template <class T>  // float, double
struct MlpRows {
  int64_t rows = 0, in = 0, hidden = 0, out = 0;
  const T *x = nullptr, *W_in = nullptr, *b_in = nullptr, *W_out = nullptr;
};

/// Elements of the buffer both functions work in.
int64_t mlp_workspace(int64_t rows, int64_t hidden);

/// y [rows, out] += relu(x W_in^T + b_in) W_out^T. `kept` [rows * hidden] gets the hidden layer; null: nobody
/// wants it.
template <class T>
void mlp_forward(const MlpRows<T>& n, T* y, T* kept, T* work);

/// What the backward pass adds to; x and b_in may be null: not wanted.
template <class T>
struct MlpGradients {
  T *x = nullptr, *W_in = nullptr, *b_in = nullptr, *W_out = nullptr;
};

/// From `kept` and dy [rows, out]. The gradient of a bias behind W_out is the sum of the rows of dy.
template <class T>
void mlp_backward(const MlpRows<T>& n, const T* kept, const T* dy, const MlpGradients<T>& d, T* work);

}  // namespace rankscope
