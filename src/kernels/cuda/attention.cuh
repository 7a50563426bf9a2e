// What the attention kernels of this folder are given: one launch serves the trials of a stack that have the
// same number of heads.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/train.h"

namespace rankscope::cuda {

template <class T>
struct Operand {
  T* data;
  Rows rows;
  /// Row `row` of trial `t`: rows of all sequences count on.
  __device__ __forceinline__ T* at(int t, int64_t row) const {
    return data + t * rows.trial + row * rows.row;
  }
};

struct Group {
  int32_t sequences, queries, keys;
  int32_t heads, width_qk, width_v;  // widths of one head
  bool shared_values;
  int32_t members;
  int32_t trial[kMaxTrials];
  float scale[kMaxTrials];
};

struct Forward {
  Group group;
  Operand<const float> q, k, v;
  Operand<float> out;
};

struct Backward {
  Group group;
  Operand<const float> q, k, v, dout;
  Operand<float> dq, dk, dv;  // dv.data may be null: not wanted
};

// Head widths 1 to 8 (powers of two), 16 keys: a few threads a head, everything in registers.
template <int W>
void narrow_forward(const Forward& f, cudaStream_t stream);
template <int W>
void narrow_backward(const Backward& b, cudaStream_t stream);

// Head widths 16 to 128, 16 keys: 16 x 16 scores on the tensor cores, float32 from three TF32 products.
template <int W>
void tile_forward(const Forward& f, cudaStream_t stream);
template <int W>
void tile_backward(const Backward& b, cudaStream_t stream);

// Every other shape of softmax attention. `aligned`: all operands can be read four floats at a time.
void any_forward(const Forward& f, bool aligned, cudaStream_t stream);
void any_backward(const Backward& b, bool aligned, cudaStream_t stream);

// Hard attention of every shape.
void hard_forward(const Forward& f, cudaStream_t stream);
void hard_backward(const Backward& b, cudaStream_t stream);

constexpr float kLog2E = 1.4426950408889634f;

/// 2^x to 2 ulp. Softmax in powers of two: the factor log2(e) rides on the scale.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace rankscope::cuda
