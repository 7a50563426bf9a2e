#include "kernels/cuda/residual.h"

#include <cfloat>
#include <cmath>

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / static_cast<int>(kWarp);

struct Sum {
  static __device__ double of(double a, double b) { return a + b; }
};
/// The larger; not a number where one is not.
struct Most {
  static __device__ double of(double a, double b) { return a > b || !(a == a) ? a : b; }
};

template <class Op>
__device__ double warp_all(double x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x = Op::of(x, __shfl_xor_sync(kEveryLane, x, step));
  return x;
}

/// Over the block, the same for all threads.
template <class Op>
__device__ double block_all(double x) {
  __shared__ double each[kWarps];
  x = warp_all<Op>(x);
  __syncthreads();  // everybody has read what an earlier call left
  if (threadIdx.x % kWarp == 0) each[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = each[0];
  for (int w = 1; w < kWarps; ++w) x = Op::of(x, each[w]);
  return x;
}

/// Middle of the norms above zero, of the two in the middle the mean; 0 where there is none. Every token
/// counts how many come before it.
__device__ double median_of(const double* norms, int tokens) {
  __shared__ double middle[2];
  int positive = 0;
  for (int j = 0; j < tokens; ++j) positive += norms[j] > 0;
  if (threadIdx.x < 2) middle[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < tokens; i += kThreads) {
    if (!(norms[i] > 0)) continue;
    int before = 0;
    for (int j = 0; j < tokens; ++j)
      before += norms[j] > 0 && (norms[j] < norms[i] || (norms[j] == norms[i] && j < i));
    if (before == (positive - 1) / 2) middle[0] = norms[i];
    if (before == positive / 2) middle[1] = norms[i];
  }
  __syncthreads();
  return 0.5 * (middle[0] + middle[1]);
}

// A block takes a sample under a rule. For sums down a column a thread owns columns, for sums along a row a
// warp owns rows; what is read again comes from the second-level cache.
__global__ __launch_bounds__(kThreads) void residual_kernel(ResidualShape shape, const float* x,
                                                            const int64_t* index, const double* present,
                                                            const double* content, double* out) {
  extern __shared__ double mean[];                                // [width]
  double* norms = mean + shape.width;                             // [tokens]
  auto* rows = reinterpret_cast<int64_t*>(norms + shape.tokens);  // [tokens], those that count
  __shared__ int counted;
  const int64_t sample = blockIdx.x % shape.samples, d = shape.width;
  const bool all = blockIdx.x < shape.samples;
  const int t = static_cast<int>(threadIdx.x), lane = t % static_cast<int>(kWarp),
            warp = t / static_cast<int>(kWarp);
  const int given = static_cast<int>(shape.tokens);
  index += sample * given;
  present += sample * given;
  content += sample * given;

  double limit = DBL_MAX;
  if (!all) {
    for (int i = warp; i < given; i += kWarps) {
      double square = 0;
#pragma unroll 8
      for (int64_t j = lane; j < d; j += kWarp) {
        const double v = x[index[i] * d + j];
        square = fma(v, v, square);
      }
      square = warp_all<Sum>(square);
      if (lane == 0) norms[i] = present[i] != 0 ? sqrt(square) : 0.0;
    }
    __syncthreads();
    limit = shape.massive * median_of(norms, given);
  }
  if (warp == 0) {  // in order, so that sums are the same on every run
    int so_far = 0;
    for (int first = 0; first < given; first += kWarp) {
      const int i = first + lane;
      const bool counts = i < given && (all ? present[i] != 0 : content[i] != 0 && !(norms[i] > limit));
      const unsigned which = __ballot_sync(kEveryLane, counts);
      if (counts) rows[so_far + __popc(which & ((1u << lane) - 1))] = index[i];
      so_far += __popc(which);
    }
    if (lane == 0) counted = so_far;
  }
  __syncthreads();
  const int tokens = counted;
  const double number = tokens;

  double column = 0, offset = 0;
  for (int64_t j = t; j < d; j += kThreads) {
    double sum = 0, size = 0;
#pragma unroll 8
    for (int i = 0; i < tokens; ++i) {
      const double v = x[rows[i] * d + j];
      sum += v;
      size += fabs(v);
    }
    mean[j] = sum / number;
    offset = fma(mean[j], mean[j], offset);
    column = Most::of(column, size);
  }
  column = block_all<Most>(column);
  offset = block_all<Sum>(offset);

  double rest_column = 0;
  for (int64_t j = t; j < d; j += kThreads) {
    const double m = mean[j];
    double size = 0;
#pragma unroll 8
    for (int i = 0; i < tokens; ++i) size += fabs(static_cast<double>(x[rows[i] * d + j]) - m);
    rest_column = Most::of(rest_column, size);
  }
  rest_column = block_all<Most>(rest_column);

  double row = 0, rest_row = 0, square = 0, rest_square = 0;
  for (int i = warp; i < tokens; i += kWarps) {
    const float* from = x + rows[i] * d;
    double size = 0, rest_size = 0;
#pragma unroll 8
    for (int64_t j = lane; j < d; j += kWarp) {
      const double v = from[j], r = v - mean[j];
      size += fabs(v);
      rest_size += fabs(r);
      square = fma(v, v, square);
      rest_square = fma(r, r, rest_square);
    }
    row = Most::of(row, warp_all<Sum>(size));
    rest_row = Most::of(rest_row, warp_all<Sum>(rest_size));
  }
  row = block_all<Most>(row);
  rest_row = block_all<Most>(rest_row);
  square = block_all<Sum>(square);
  rest_square = block_all<Sum>(rest_square);

  if (t != 0) return;
  const double whole = sqrt(square), residual = sqrt(rest_square), composite = sqrt(row * column),
               rest_composite = sqrt(rest_row * rest_column);
  const bool defined = number >= 2 && isfinite(whole);
  out += static_cast<int64_t>(blockIdx.x) * kResidualNumbers;
  out[0] = defined ? rest_composite : NAN;
  out[1] = defined && composite > 0 ? rest_composite / composite : NAN;
  out[2] = defined ? residual : NAN;
  out[3] = defined ? sqrt(number * offset) : NAN;
  out[4] = defined && whole > 0 ? residual / whole : NAN;
}

}  // namespace

void residuals(const ResidualShape& shape, const float* x, const int64_t* index, const double* present,
               const double* content, double* out, void* stream) {
  if (shape.samples == 0) return;
  if (!residual_fits(shape))
    throw Error("the tokens are too wide or too many for the fused residual").in("residuals");
  const auto bytes = static_cast<int>(8 * shape.width + 16 * shape.tokens);
  check(cudaFuncSetAttribute(residual_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "residuals");
  residual_kernel<<<blocks_for(shape.samples * kResidualRules, 1, "residuals"), kThreads,
                    static_cast<size_t>(bytes), as_stream(stream)>>>(shape, x, index, present, content, out);
  check_launch("residuals");
}

}  // namespace rankscope::cuda
