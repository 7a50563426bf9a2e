// Standard normals on the device: one thread makes the four of one counter.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/train.h"
#include "kernels/normals_math.h"

namespace rankscope::cuda {
namespace {

constexpr int kThreads = 256;

__global__ __launch_bounds__(kThreads) void fill_kernel(const uint64_t* seeds, uint32_t stream_id,
                                                        const int64_t* steps, int64_t count, float* out) {
  const int64_t counter = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t first = 4 * counter;
  if (first >= count) return;
  const int t = blockIdx.y;
  const Normals4 n = box_muller(
      philox_words(seeds[t], stream_id, static_cast<uint32_t>(steps[t]), static_cast<uint64_t>(counter)));
  float* to = out + t * count + first;
  if (count % 4 == 0 && reinterpret_cast<uintptr_t>(out) % sizeof(float4) == 0) {
    *reinterpret_cast<float4*>(to) = make_float4(n.n0, n.n1, n.n2, n.n3);
    return;
  }
  const float lanes[4] = {n.n0, n.n1, n.n2, n.n3};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i < count) to[i] = lanes[i];
}

}  // namespace

void fill_normals(int64_t trials, const uint64_t* seeds, uint32_t stream_id, const int64_t* steps,
                  int64_t count, float* out, void* stream) {
  if (trials == 0 || count == 0) return;
  const dim3 grid(blocks_for(count, 4 * kThreads, "fill_normals"), static_cast<unsigned>(trials));
  fill_kernel<<<grid, kThreads, 0, as_stream(stream)>>>(seeds, stream_id, steps, count, out);
  check_launch("fill_normals");
}

}  // namespace rankscope::cuda
