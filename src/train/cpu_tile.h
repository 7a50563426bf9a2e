// A tile of sequences through forward, loss and backward of an encoder, on raw buffers that stay from tile to
// tile: no graph, no allocation, and gradients are added where they belong. For the encoders of the studies;
// every other network goes through autograd (train/plain_forward.h), which this is held to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/protocol.h"

namespace rankscope {

class EncoderTile {
 public:
  /// Post-norm, tokens read as they come and answered by each, an MLP in every block; no dropout; and fused
  /// kernels not switched off. Anything it does not know is not its own (train/fused_forward.h).
  static bool covers(const TrialSpec& trial);

  /// Buffers for at most `sequences` of them. Networks that differ in their heads alone share a tile.
  EncoderTile(const TrialSpec& trial, int64_t sequences);
  EncoderTile(EncoderTile&&) = default;  // a copy would write into the same buffers

  /// weight * the sum of squared errors of tokens [count, tokens, width] against target [count, tokens,
  /// answer width], both dense. Adds its gradient to `gradient`, laid out like `parameters`.
  double loss(const ModelSpec& spec, int64_t count, const float* tokens, const float* target, float weight,
              const float* parameters, float* gradient);

 private:
  // Where a block's parameters lie in the flat buffer; -1: it has none.
  struct Offsets {
    int64_t ln1_w, ln1_b, W_QKV, b_QKV, W_O, b_O, ln2_w, ln2_b, W_in, b_in, W_out, b_out;
  };
  // What the backward pass of a block needs again.
  struct Kept {
    float *qkv, *z, *attention, *inverse1, *u, *hidden, *mlp, *inverse2, *y;
  };
  struct Run;

  std::vector<Offsets> offsets_;
  std::vector<Kept> kept_;
  float *dy_ = nullptr, *dsum_ = nullptr, *dz_ = nullptr, *dqkv_ = nullptr, *work_ = nullptr;
  int64_t tokens_ = 0, qkv_row_ = 0;
  std::shared_ptr<float> memory_;
};

}  // namespace rankscope
