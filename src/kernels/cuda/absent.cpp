// Stands in for the CUDA kernels where this build has none.
#include "base/error.h"
#include "kernels/cuda/train.h"

namespace rankscope::cuda {
namespace {

[[noreturn]] void absent() {
  throw Error("this build has no CUDA")
      .hint("run on the CPU: --device cpu, or build with a LibTorch that has CUDA");
}

}  // namespace

bool available() { return false; }

void small_attention_forward(const SmallAttention&, const float*, const float*, const float*, float*, void*) {
  absent();
}

void small_attention_backward(const SmallAttention&, const float*, const float*, const float*, const float*,
                              Rows, float*, Rows, float*, Rows, float*, Rows, void*) {
  absent();
}

void fill_normals(int64_t, const uint64_t*, uint32_t, const int64_t*, int64_t, float*, void*) { absent(); }

void adamw_update(const AdamW&, int64_t, int64_t, const int64_t*, const float*, int64_t, const int32_t*,
                  const float*, float*, float*, float*, void*) {
  absent();
}

}  // namespace rankscope::cuda
