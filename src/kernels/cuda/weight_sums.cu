// A warp a row: rows are short, and their neighbours stand side by side.
#include "kernels/cuda/weight_sums.h"

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr unsigned kRows = 8;  // of a block

// This warp's row, or none, and its lane.
struct Place {
  int64_t row;
  int lane;
  bool there;
  __device__ explicit Place(const WeightSums& a)
      : row(static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kWarp),
        lane(static_cast<int>(threadIdx.x % kWarp)),
        there(row < a.rows) {}
};

__global__ void ones_kernel(WeightSums a, const float* v, float* to) {
  const Place p(a);
  if (!p.there) return;
  for (int64_t c = p.lane; c < a.padded; c += kWarp)
    to[p.row * a.padded + c] = c < a.width ? v[p.row * a.width + c] : c == a.width ? 1.0f : 0.0f;
}

__global__ void over_weights_kernel(WeightSums a, const float* sums, float* out) {
  const Place p(a);
  if (!p.there) return;
  const float weight = sums[p.row * a.padded + a.width];
  for (int64_t c = p.lane; c < a.width; c += kWarp)
    out[p.row * a.width + c] = sums[p.row * a.padded + c] / weight;
}

__global__ void over_weights_backward_kernel(WeightSums a, const float* sums, const float* out,
                                             const float* dout, float* dsums) {
  const Place p(a);
  if (!p.there) return;
  const float weight = sums[p.row * a.padded + a.width];
  float along = 0;
  for (int64_t c = p.lane; c < a.width; c += kWarp)
    along += dout[p.row * a.width + c] * out[p.row * a.width + c];
  along = warp_sum(along);
  for (int64_t c = p.lane; c < a.padded; c += kWarp)
    dsums[p.row * a.padded + c] = c < a.width    ? dout[p.row * a.width + c] / weight
                                  : c == a.width ? -along / weight
                                                 : 0.0f;
}

template <class... Parameters, class... Arguments>
void over_rows(void (*kernel)(Parameters...), const char* name, void* stream, const WeightSums& a,
               const Arguments&... arguments) {
  if (a.rows == 0) return;
  launch_kernel(kernel, blocks_for(a.rows, kRows, name), kRows * kWarp, 0, stream, name, Start::kInOrder, a,
                arguments...);
}

}  // namespace

void values_beside_ones(const WeightSums& a, const float* v, float* to, void* stream) {
  over_rows(ones_kernel, "values_beside_ones", stream, a, v, to);
}

void over_weights(const WeightSums& a, const float* sums, float* out, void* stream) {
  over_rows(over_weights_kernel, "over_weights", stream, a, sums, out);
}

void over_weights_backward(const WeightSums& a, const float* sums, const float* out, const float* dout,
                           float* dsums, void* stream) {
  over_rows(over_weights_backward_kernel, "over_weights_backward", stream, a, sums, out, dout, dsums);
}

}  // namespace rankscope::cuda
