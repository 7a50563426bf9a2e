#include "kernels/cuda/skip_norm.h"

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarp, kRowsPerBlock = 64;
constexpr int kMaxWidth = static_cast<int>(kMaxNormWidth);

struct Forward {
  SkipNorm n;
  const float *x, *u, *gain, *bias;
  float* y;
};

struct Backward {
  SkipNorm n;
  const float *x, *u, *gain, *dy;
  float *dx, *du, *partial;  // partial [trials, blocks, parameters]
};

// A row over the lanes of a warp: lane l holds columns l, l + 32, ...; K of them.
template <int K>
struct Row {
  float z[K];
  __device__ __forceinline__ void load(const float* from, int width, int lane) {
#pragma unroll
    for (int i = 0; i < K; ++i) z[i] = lane + i * 32 < width ? from[lane + i * 32] : 0.0f;
  }
  __device__ __forceinline__ void store(float* to, int width, int lane, float factor = 1) const {
#pragma unroll
    for (int i = 0; i < K; ++i)
      if (lane + i * 32 < width) to[lane + i * 32] = factor * z[i];
  }
  __device__ __forceinline__ float sum() const {
    float total = 0;
#pragma unroll
    for (int i = 0; i < K; ++i) total += z[i];
    return warp_sum(total);
  }
  __device__ __forceinline__ float dot(const Row& other) const {
    float total = 0;
#pragma unroll
    for (int i = 0; i < K; ++i) total = fmaf(z[i], other.z[i], total);
    return warp_sum(total);
  }
};

// z = x + branch * u, centred and scaled; returns the scale.
template <SkipNormKind kKind, int K>
__device__ __forceinline__ float normalise(const SkipNorm& n, const float* x, const float* u, int64_t at,
                                           int lane, Row<K>& row) {
  const int width = static_cast<int>(n.width);
  row.load(x + at, width, lane);
  if (u != nullptr) {
    Row<K> branch;
    branch.load(u + at, width, lane);
#pragma unroll
    for (int i = 0; i < K; ++i) row.z[i] = fmaf(n.branch, branch.z[i], row.z[i]);
  }
  if constexpr (kKind == SkipNormKind::layer) {
    const float mean = row.sum() / width;
#pragma unroll
    for (int i = 0; i < K; ++i) row.z[i] = lane + i * 32 < width ? row.z[i] - mean : 0.0f;
  }
  const float square = row.dot(row);
  const float scale =
      kKind == SkipNormKind::unit ? 1.0f / sqrtf(square) : 1.0f / sqrtf(square / width + n.epsilon);
#pragma unroll
  for (int i = 0; i < K; ++i) row.z[i] *= scale;
  return scale;
}

// The gain of this lane's columns.
template <SkipNormKind kKind, int K>
__device__ __forceinline__ Row<K> gain_of(const SkipNorm& n, const float* gain, int t, int lane) {
  Row<K> g;
  if constexpr (kKind == SkipNormKind::unit) {
#pragma unroll
    for (int i = 0; i < K; ++i) g.z[i] = gain[t * n.parameter_stride];
  } else {
    g.load(gain + t * n.parameter_stride, static_cast<int>(n.width), lane);
  }
  return g;
}

template <SkipNormKind kKind, int K>
__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f) {
  const SkipNorm& n = f.n;
  const int lane = threadIdx.x % kWarp, t = blockIdx.y, width = static_cast<int>(n.width);
  const int64_t token = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (token >= n.tokens) return;
  const int64_t at = (t * n.tokens + token) * n.width;
  Row<K> row;
  normalise<kKind, K>(n, f.x, f.u, at, lane, row);
  const Row<K> gain = gain_of<kKind, K>(n, f.gain, t, lane);
#pragma unroll
  for (int i = 0; i < K; ++i) row.z[i] *= gain.z[i];
  if constexpr (kKind == SkipNormKind::layer) {
    Row<K> bias;
    bias.load(f.bias + t * n.parameter_stride, width, lane);
#pragma unroll
    for (int i = 0; i < K; ++i) row.z[i] += bias.z[i];
  }
  row.store(f.y + at, width, lane);
}

template <SkipNormKind kKind, int K>
__global__ __launch_bounds__(kThreads) void backward_kernel(const __grid_constant__ Backward b) {
  __shared__ float sums[kWarps][2 * kMaxWidth];
  const SkipNorm& n = b.n;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, t = blockIdx.y;
  const int width = static_cast<int>(n.width);
  const Row<K> gain = gain_of<kKind, K>(n, b.gain, t, lane);
  Row<K> dgain{}, dbias{};
  for (int i = warp; i < kRowsPerBlock; i += kWarps) {
    const int64_t token = int64_t{blockIdx.x} * kRowsPerBlock + i;
    if (token >= n.tokens) break;
    const int64_t at = (t * n.tokens + token) * n.width;
    Row<K> row, g;
    const float scale = normalise<kKind, K>(n, b.x, b.u, at, lane, row);
    g.load(b.dy + at, width, lane);
#pragma unroll
    for (int c = 0; c < K; ++c) {
      dgain.z[c] = fmaf(g.z[c], row.z[c], dgain.z[c]);
      dbias.z[c] += g.z[c];
      g.z[c] *= gain.z[c];
    }
    const float count = kKind == SkipNormKind::unit ? 1.0f : static_cast<float>(width);
    const float along = g.dot(row) / count;
    const float mean = kKind == SkipNormKind::layer ? g.sum() / count : 0.0f;
#pragma unroll
    for (int c = 0; c < K; ++c) g.z[c] = scale * (g.z[c] - mean - along * row.z[c]);
    g.store(b.dx + at, width, lane);
    if (b.du != nullptr) g.store(b.du + at, width, lane, n.branch);
  }

  int parameters = 1;
  if constexpr (kKind == SkipNormKind::unit) {
    const float total = dgain.sum();
    if (lane == 0) sums[warp][0] = total;
  } else {
    parameters = kKind == SkipNormKind::layer ? 2 * width : width;
    dgain.store(sums[warp], width, lane);
    if constexpr (kKind == SkipNormKind::layer) dbias.store(sums[warp] + width, width, lane);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < parameters; c += kThreads) {
    float total = 0;
    for (int w = 0; w < kWarps; ++w) total += sums[w][c];
    b.partial[(t * int64_t{gridDim.x} + blockIdx.x) * parameters + c] = total;
  }
}

// One warp a parameter: lanes take the blocks' sums in turn, then add up as a tree; the same order every
// time.
__global__ void finish_kernel(const float* partial, int blocks, int parameters, int columns, int64_t stride,
                              float* dgain, float* dbias) {
  const int c = blockIdx.x, t = blockIdx.y;
  float total = 0;
  for (int i = threadIdx.x; i < blocks; i += kWarp)
    total += partial[(int64_t{t} * blocks + i) * parameters + c];
  total = warp_sum(total);
  if (threadIdx.x == 0) (c < columns ? dgain : dbias)[t * stride + c % columns] = total;
}

int64_t columns_of(const SkipNorm& n) { return n.kind == SkipNormKind::unit ? 1 : n.width; }
int64_t parameters_of(const SkipNorm& n) { return columns_of(n) * (n.kind == SkipNormKind::layer ? 2 : 1); }
int64_t blocks_of(const SkipNorm& n) { return (n.tokens + kRowsPerBlock - 1) / kRowsPerBlock; }

// Calls use<kind, columns a lane>().
template <SkipNormKind kKind, class Use>
void with_columns(const SkipNorm& n, Use use) {
  if (n.width <= 32) return use.template operator()<kKind, 1>();
  if (n.width <= 64) return use.template operator()<kKind, 2>();
  if (n.width <= 128) return use.template operator()<kKind, 4>();
  if (n.width <= kMaxWidth) return use.template operator()<kKind, 8>();
  throw Error("rows wider than 256 columns").in("skip_norm on CUDA");
}

template <class Use>
void with_kernel(const SkipNorm& n, Use use) {
  switch (n.kind) {
    case SkipNormKind::unit:
      return with_columns<SkipNormKind::unit>(n, use);
    case SkipNormKind::rms:
      return with_columns<SkipNormKind::rms>(n, use);
    case SkipNormKind::layer:
      return with_columns<SkipNormKind::layer>(n, use);
  }
}

}  // namespace

void skip_norm_forward(const SkipNorm& n, const float* x, const float* u, const float* gain,
                       const float* bias, float* y, void* stream) {
  if (n.trials == 0 || n.tokens == 0) return;
  const dim3 grid(blocks_for(n.tokens, kWarps, "skip_norm_forward"), static_cast<unsigned>(n.trials));
  with_kernel(n, [&]<SkipNormKind kKind, int K>() {
    forward_kernel<kKind, K><<<grid, kThreads, 0, as_stream(stream)>>>({n, x, u, gain, bias, y});
  });
  check_launch("skip_norm_forward");
}

int64_t skip_norm_workspace(const SkipNorm& n) { return n.trials * blocks_of(n) * parameters_of(n); }

void skip_norm_backward(const SkipNorm& n, const float* x, const float* u, const float* gain, const float* dy,
                        float* dx, float* du, float* dgain, float* dbias, float* workspace, void* stream) {
  if (n.trials == 0) return;
  const cudaStream_t s = as_stream(stream);
  const auto blocks = static_cast<unsigned>(blocks_of(n)), trials = static_cast<unsigned>(n.trials);
  if (blocks > 0)
    with_kernel(n, [&]<SkipNormKind kKind, int K>() {
      backward_kernel<kKind, K>
          <<<dim3(blocks, trials), kThreads, 0, s>>>({n, x, u, gain, dy, dx, du, workspace});
    });
  check_launch("skip_norm_backward");
  const auto parameters = static_cast<int>(parameters_of(n));
  finish_kernel<<<dim3(static_cast<unsigned>(parameters), trials), kWarp, 0, s>>>(
      workspace, static_cast<int>(blocks), parameters, static_cast<int>(columns_of(n)), n.gradient_stride,
      dgain, dbias);
  check_launch("skip_norm_backward");
}

}  // namespace rankscope::cuda
