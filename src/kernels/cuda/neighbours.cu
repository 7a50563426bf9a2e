#include "kernels/cuda/neighbours.h"

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr size_t kSharedBytes = 227 * 1024;  // what a block may have on sm_90

__device__ void to_unit(float* row, int d, int lane) {
  float square = 0;
  for (int c = lane; c < d; c += kWarp) square = fmaf(row[c], row[c], square);
  const float scale = 1.0f / sqrtf(warp_sum(square));
  for (int c = lane; c < d; c += kWarp) row[c] *= scale;
}

// One block a sequence, one warp an asker, one lane a point. `staged`: the points fit into shared memory,
// where an odd stride lets 32 lanes read one column of 32 rows at once.
__global__ __launch_bounds__(kThreads) void targets_kernel(float sign, int count, int queries, int d,
                                                           float* points, float* asks, float* target,
                                                           bool staged) {
  extern __shared__ float shared[];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  points += int64_t{blockIdx.x} * count * d;
  for (int i = warp; i < count; i += kWarps) to_unit(points + i * d, d, lane);
  if (asks != nullptr) {
    asks += int64_t{blockIdx.x} * queries * d;
    for (int i = warp; i < queries; i += kWarps) to_unit(asks + i * d, d, lane);
  } else {
    asks = points;
  }
  __syncthreads();
  const float* rows = points;
  int stride = d;
  if (staged) {
    stride = d | 1;
    for (int i = threadIdx.x; i < count * d; i += kThreads) shared[i / d * stride + i % d] = points[i];
    rows = shared;
    __syncthreads();
  }
  target += int64_t{blockIdx.x} * queries * d;
  for (int i = warp; i < queries; i += kWarps) {
    float best = -INFINITY;
    int winner = count;
    for (int j = lane; j < count; j += kWarp) {
      float product = 0;
      for (int c = 0; c < d; ++c) product = fmaf(asks[i * d + c], rows[j * stride + c], product);
      if (sign * product > best) {
        best = sign * product;
        winner = j;
      }
    }
    const float most = warp_max(best);
    if (best < most) winner = count;
    for (int step = kWarp / 2; step > 0; step /= 2)
      winner = min(winner, __shfl_xor_sync(kEveryLane, winner, step));
    winner = min(winner, count - 1);  // products that are not numbers have no largest
    for (int c = lane; c < d; c += kWarp) target[i * d + c] = rows[winner * stride + c];
  }
}

}  // namespace

void neighbour_targets(Neighbour which, int64_t sequences, int64_t count, int64_t queries, int64_t d,
                       float* points, float* asks, float* target, void* stream) {
  if (asks == nullptr) queries = count;
  if (sequences == 0 || count == 0 || d == 0) return;
  const size_t whole = sizeof(float) * count * (d | 1);
  const bool staged = whole <= kSharedBytes;
  const size_t bytes = staged ? whole : 0;
  check(cudaFuncSetAttribute(targets_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "neighbour_targets");
  targets_kernel<<<blocks_for(sequences, 1, "neighbour_targets"), kThreads, bytes, as_stream(stream)>>>(
      which == Neighbour::nearest ? 1.0f : -1.0f, static_cast<int>(count), static_cast<int>(queries),
      static_cast<int>(d), points, asks, target, staged);
  check_launch("neighbour_targets");
}

}  // namespace rankscope::cuda
