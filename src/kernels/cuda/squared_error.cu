#include "kernels/cuda/squared_error.h"

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarp, kRowsPerBlock = 32;

// One warp a row; each block's sum goes to partial [trials, blocks].
__global__ __launch_bounds__(kThreads) void error_kernel(SquaredError e, const float* answers,
                                                         const float* targets, float* gradient,
                                                         float* partial) {
  __shared__ float sums[kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, t = blockIdx.y;
  const float factor = 2.0f * e.weight;
  float sum = 0;
  for (int i = warp; i < kRowsPerBlock; i += kWarps) {
    const int64_t r = int64_t{blockIdx.x} * kRowsPerBlock + i;
    if (r >= e.rows) break;
    const float* answer = answers + (t * e.rows + r) * e.width;
    const float* target = targets + (t * e.rows + r) * e.target_width;
    for (int64_t c = lane; c < e.width; c += kWarp) {
      const float difference = c < e.target_width ? answer[c] - target[c] : 0.0f;
      sum = fmaf(difference, difference, sum);
      if (gradient != nullptr) gradient[(t * e.rows + r) * e.width + c] = factor * difference;
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += sums[w];
  partial[t * int64_t{gridDim.x} + blockIdx.x] = total;
}

// One warp a trial: lanes take blocks in turn, then add up as a tree; the same order every time.
__global__ void finish_kernel(const float* partial, int blocks, float weight, float* loss) {
  const int t = blockIdx.x;
  float sum = 0;
  for (int i = threadIdx.x; i < blocks; i += kWarp) sum += partial[int64_t{t} * blocks + i];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) loss[t] = weight * sum;
}

int64_t blocks_of(const SquaredError& e) { return (e.rows + kRowsPerBlock - 1) / kRowsPerBlock; }

}  // namespace

int64_t squared_error_workspace(const SquaredError& e) { return e.trials * blocks_of(e); }

void squared_error(const SquaredError& e, const float* answers, const float* targets, float* loss,
                   float* gradient, float* workspace, void* stream) {
  if (e.trials == 0 || e.rows == 0) return;
  const cudaStream_t s = as_stream(stream);
  const auto blocks = static_cast<unsigned>(blocks_of(e)), trials = static_cast<unsigned>(e.trials);
  error_kernel<<<dim3(blocks, trials), kThreads, 0, s>>>(e, answers, targets, gradient, workspace);
  finish_kernel<<<trials, kWarp, 0, s>>>(workspace, static_cast<int>(blocks), e.weight, loss);
  check_launch("squared_error");
}

}  // namespace rankscope::cuda
