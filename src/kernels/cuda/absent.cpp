// Stands in for the CUDA kernels where this build has none.
#include "base/error.h"
#include "kernels/cuda/long_attention.h"
#include "kernels/cuda/mlp.h"
#include "kernels/cuda/neighbours.h"
#include "kernels/cuda/pattern.h"
#include "kernels/cuda/projected_attention.h"
#include "kernels/cuda/residual.h"
#include "kernels/cuda/running_attention.h"
#include "kernels/cuda/skip_norm.h"
#include "kernels/cuda/squared_error.h"
#include "kernels/cuda/train.h"
#include "kernels/cuda/tridiagonal.h"
#include "kernels/cuda/weight_sums.h"

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

int64_t linear_attention_workspace(const LinearAttention&, int64_t, bool) { absent(); }

void linear_attention_forward(const LinearAttention&, int64_t, bool, const float*, const float*, const float*,
                              const float*, float*, float*, void*) {
  absent();
}

void linear_attention_backward(const LinearAttention&, int64_t, bool, const float*, const float*,
                               const float*, const float*, const float*, float*, float*, float*, float*,
                               void*) {
  absent();
}

void values_beside_ones(const WeightSums&, const float*, float*, void*) { absent(); }

void over_weights(const WeightSums&, const float*, float*, void*) { absent(); }

void over_weights_backward(const WeightSums&, const float*, const float*, const float*, float*, void*) {
  absent();
}

int64_t delta_attention_saved(const DeltaAttention&, int64_t) { absent(); }

int64_t delta_attention_workspace(const DeltaAttention&, int64_t) { absent(); }

void delta_attention_forward(const DeltaAttention&, int64_t, bool, const DeltaInputs<float>&, float*, float*,
                             void*) {
  absent();
}

void delta_attention_backward(const DeltaAttention&, int64_t, bool, const DeltaInputs<float>&, const float*,
                              const float*, const DeltaGradients<float>&, float*, void*) {
  absent();
}

bool projected_attention_takes(int64_t, int64_t, int64_t, int64_t) { return false; }

void projected_attention_forward(const ProjectedAttention&, const float*, const float*, const float*, float*,
                                 void*) {
  absent();
}

void projected_attention_backward(const ProjectedAttention&, const float*, const float*, const float*,
                                  const float*, Rows, float*, Rows, void*) {
  absent();
}

void fill_normals(int64_t, const uint64_t*, uint32_t, const int64_t*, int64_t, float*, void*) { absent(); }

void adamw_update(const AdamW&, int64_t, int64_t, const int64_t*, const float*, int64_t, const int32_t*,
                  std::span<const AdamWSegment>, float*, float*, float*, void*) {
  absent();
}

void skip_norm_forward(const SkipNorm&, const float*, const float*, const float*, const float*, float*,
                       void*) {
  absent();
}

int64_t skip_norm_workspace(const SkipNorm&) { absent(); }

void skip_norm_backward(const SkipNorm&, const float*, const float*, const float*, const float*, float*,
                        float*, float*, float*, float*, void*) {
  absent();
}

int64_t squared_error_workspace(const SquaredError&) { absent(); }

void squared_error(const SquaredError&, const float*, const float*, float*, float*, float*, void*) {
  absent();
}

void mlp_prepare(int64_t, int64_t, int64_t, int64_t, const float*, int64_t, float*, float*, void*) {
  absent();
}

int64_t mlp_sign_words(const Mlp&) { absent(); }

void mlp_forward(const Mlp&, const float*, const float*, const float*, const float*, const float*, float*,
                 uint32_t*, void*) {
  absent();
}

void mlp_backward_tokens(const Mlp&, const float*, const float*, const float*, const uint32_t*, float*,
                         void*) {
  absent();
}

int64_t mlp_splits(const Mlp&) { absent(); }

void mlp_backward_weights(const Mlp&, MlpTokens, MlpTokens, const float*, const float*, const float*, float*,
                          float*, float*, void*) {
  absent();
}

void neighbour_targets(Neighbour, int64_t, int64_t, int64_t, int64_t, float*, float*, float*, void*) {
  absent();
}

void residuals(const ResidualShape&, const float*, const int64_t*, const double*, const double*, double*,
               void*) {
  absent();
}
bool long_attention_takes(const LongAttention&) { return false; }

void long_attention(const LongAttention&, const LongOperands&, const LongResults&, float*, void*) {
  absent();
}

void pattern_sums(const PatternTile&, const float*, double*, double*, void*) { absent(); }

void tridiagonalise(int64_t, int64_t, double*, double*, double*, void*) { absent(); }

void tridiagonal_eigenvalues(const Bisection&, const double*, const double*, const double*, double*, void*) {
  absent();
}

}  // namespace rankscope::cuda
