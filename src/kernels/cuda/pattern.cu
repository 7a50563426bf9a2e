#include "kernels/cuda/pattern.h"

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kThreads = 256;

// A thread owns columns and goes down the segment's rows. Entropy is linear in rows once each is divided by
// its own logarithm, so that no row has to be summed by itself.
__global__ __launch_bounds__(kThreads) void pattern_sums_kernel(PatternTile tile, int64_t segments,
                                                                const float* pattern, double* entropy,
                                                                double* received) {
  __shared__ double weights[kPatternSegment], each[kThreads / kWarp];
  const int64_t matrix = blockIdx.x / segments, segment = blockIdx.x % segments;
  const int64_t first = segment * kPatternSegment;
  const int rows = static_cast<int>(min(kPatternSegment, tile.rows - first)),
            t = static_cast<int>(threadIdx.x);
  const auto first_key = [&](int64_t query) {
    return tile.window > 0 && query + 1 > tile.window ? query - tile.window + 1 : 0;
  };
  const auto end_key = [&](int64_t query) {
    if (tile.causal) return min(query + 1, tile.keys);
    return tile.window > 0 ? min(query + tile.window, tile.keys) : tile.keys;
  };
  for (int r = t; r < rows; r += kThreads) {
    const int64_t query = tile.first_row + first + r, seen = end_key(query) - first_key(query);
    weights[r] = seen > 1 ? 1.0 / log(static_cast<double>(seen)) : 0.0;
  }
  __syncthreads();
  const float* from = pattern + (matrix * tile.rows + first) * tile.keys;
  double* to = received + (matrix * segments + segment) * tile.keys;
  double sum = 0;
  for (int64_t j = t; j < tile.keys; j += kThreads) {
    double column = 0;
#pragma unroll 8
    for (int r = 0; r < rows; ++r) {
      const int64_t query = tile.first_row + first + r;
      if (j < first_key(query) || j >= end_key(query)) continue;
      const float p = from[r * tile.keys + j];
      column += p;
      if (p > 0) sum -= weights[r] * static_cast<double>(p * logf(p));
      if (!(p == p)) sum += p;  // not a number stays one
    }
    to[j] = column;
  }
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kEveryLane, sum, step);
  if (t % kWarp == 0) each[t / kWarp] = sum;
  __syncthreads();
  if (t != 0) return;
  double total = 0;
  for (unsigned w = 0; w < kThreads / kWarp; ++w) total += each[w];
  entropy[matrix * segments + segment] = total;
}

}  // namespace

void pattern_sums(const PatternTile& tile, const float* pattern, double* entropy, double* received,
                  void* stream) {
  if (tile.matrices == 0 || tile.rows == 0 || tile.keys == 0) return;
  const int64_t segments = pattern_segments(tile);
  const unsigned blocks = blocks_for(tile.matrices * segments, 1, "pattern_sums");
  pattern_sums_kernel<<<blocks, kThreads, 0, as_stream(stream)>>>(tile, segments, pattern, entropy, received);
  check_launch("pattern_sums");
}

}  // namespace rankscope::cuda
