#include "kernels/cuda/spectra.h"

#include <cfloat>

#include "kernels/cuda/launch.cuh"
#include "kernels/jacobi_math.h"

namespace rankscope::cuda {
namespace {

constexpr int kMostWarps = 16;
constexpr int kLongest = static_cast<int>(kLongestSpectra);

__device__ double warp_sum_wide(double x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kEveryLane, x, step);
  return x;
}

/// The matrix of a block: columns of 32 K rows, those beyond `rows` zero. The stride is odd, so that 32 lanes
/// may also write a row at once.
template <int K>
struct Columns {
  static constexpr int kStride = K * static_cast<int>(kWarp) + 1;
  float* data;
  int rows, cols;

  __device__ float* of(int j) const { return data + j * kStride; }
};

/// The largest entry's size, the same for all threads; NaN where an entry is not finite.
__device__ float largest_of(const float* a, int count) {
  __shared__ float each[kMostWarps];
  float largest = 0;
  bool bad = false;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const float size = fabsf(a[i]);
    bad = bad || !(size <= FLT_MAX);
    largest = fmaxf(largest, size);
  }
  largest = warp_max(largest);
  if (threadIdx.x % kWarp == 0) each[threadIdx.x / kWarp] = largest;
  if (__syncthreads_or(bad)) return NAN;
  for (unsigned w = 0; w < blockDim.x / kWarp; ++w) largest = fmaxf(largest, each[w]);
  return largest;
}

/// H A times `scale`, transposed where `wide`.
template <int K>
__device__ void load(const Columns<K>& x, const float* a, int m, int n, double scale, bool wide) {
  __shared__ double means[kLongest];
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += a[i * n + j];
    means[j] = scale * sum / m;
  }
  const int padding = K * static_cast<int>(kWarp) - x.rows;
  for (int i = threadIdx.x; i < padding * x.cols; i += blockDim.x)
    x.of(i / padding)[x.rows + i % padding] = 0;
  __syncthreads();
  for (int at = threadIdx.x; at < m * n; at += blockDim.x) {
    const int i = at / n, j = at % n;
    x.of(wide ? i : j)[wide ? j : i] = jacobi::reflected(i, m, scale * a[at], scale * a[j], means[j]);
  }
  __syncthreads();
}

/// Every pair once. Rows before first_row turn with the others but do not count, columns before first_column
/// stay. Whether a pair had to turn.
template <int K>
__device__ bool sweep(const Columns<K>& x, int first_row, int first_column) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int seats = x.cols + x.cols % 2;
  const float most = jacobi::tolerance(x.rows);
  bool turned = false;
  for (int round = 0; round + 1 < seats; ++round) {
    for (int table = warp; table < seats / 2; table += warps) {
      const jacobi::Pair pair = jacobi::meeting(round, table, seats);
      if (pair.p < first_column || pair.q >= x.cols) continue;
      float *at_p = x.of(pair.p) + lane, *at_q = x.of(pair.q) + lane, p[K], q[K];
      float pp = 0, qq = 0, pq = 0;
#pragma unroll
      for (int k = 0; k < K; ++k) {
        p[k] = at_p[k * kWarp];
        q[k] = at_q[k * kWarp];
        if (k == 0 && lane < first_row) continue;
        pp = fmaf(p[k], p[k], pp);
        qq = fmaf(q[k], q[k], qq);
        pq = fmaf(p[k], q[k], pq);
      }
      const jacobi::Turn turn = jacobi::turn_of(warp_sum(pp), warp_sum(qq), warp_sum(pq), most);
      if (!turn.needed) continue;
      turned = true;
#pragma unroll
      for (int k = 0; k < K; ++k) {
        jacobi::apply(turn, p[k], q[k]);
        at_p[k * kWarp] = p[k];
        at_q[k * kWarp] = q[k];
      }
    }
    __syncthreads();
  }
  return __syncthreads_or(turned);
}

/// Sweeps until no pair turns: their number, or -1 where that takes too many.
template <int K>
__device__ int make_orthogonal(const Columns<K>& x, int first_row, int first_column) {
  for (int i = 1; i <= jacobi::kMostSweeps; ++i)
    if (!sweep(x, first_row, first_column)) return i;
  return -1;
}

template <int K>
__device__ void measure(const Columns<K>& x, int first_row, double* norms) {
  const int lane = threadIdx.x % kWarp;
  for (int j = threadIdx.x / kWarp; j < x.cols; j += blockDim.x / kWarp) {
    double sum = 0;
    for (int r = lane < first_row ? lane + kWarp : lane; r < x.rows; r += kWarp) {
      const double v = x.of(j)[r];
      sum = fma(v, v, sum);
    }
    sum = warp_sum_wide(sum);
    if (lane == 0) norms[j] = sqrt(sum);
  }
  __syncthreads();
}

template <int K>
__global__ __launch_bounds__(kMostWarps* kWarp) void spectra_kernel(int m, int n, const float* a,
                                                                    double* sigma, double* centered,
                                                                    int32_t* sweeps) {
  extern __shared__ float shared[];
  __shared__ double norms[kLongest];
  const bool wide = m < n;
  const Columns<K> x{shared, max(m, n), min(m, n)};
  a += int64_t{blockIdx.x} * m * n;
  sigma += int64_t{blockIdx.x} * x.cols;
  const float largest = largest_of(a, m * n);
  if (isnan(largest)) {
    for (int j = threadIdx.x; j < x.cols; j += blockDim.x) sigma[j] = NAN;
    if (threadIdx.x == 0) {
      centered[blockIdx.x] = NAN;
      sweeps[blockIdx.x] = 0;
    }
    return;
  }
  // A power of two: squares neither overflow nor vanish, and nothing is rounded.
  const int exponent = largest > 0 ? ilogbf(largest) : 0;
  load(x, a, m, n, ldexp(1.0, -exponent), wide);
  const int first_row = wide ? 0 : 1, first_column = wide ? 1 : 0;
  const int rest = make_orthogonal(x, first_row, first_column);
  measure(x, first_row, norms);
  if (threadIdx.x == 0) {
    double most = 0;
    for (int j = first_column; j < x.cols; ++j) most = fmax(most, norms[j]);
    centered[blockIdx.x] = ldexp(most, exponent);
  }
  const int all = make_orthogonal(x, 0, 0);
  measure(x, 0, norms);
  for (int j = threadIdx.x; j < x.cols; j += blockDim.x) {
    int above = 0;
    for (int i = 0; i < x.cols; ++i) above += norms[i] > norms[j] || (norms[i] == norms[j] && i < j);
    sigma[above] = ldexp(norms[j], exponent);
  }
  if (threadIdx.x == 0) sweeps[blockIdx.x] = rest < 0 || all < 0 ? -1 : rest + all;
}

template <int K>
void launch(const Spectra& s, const float* a, double* sigma, double* centered, int32_t* sweeps,
            cudaStream_t stream) {
  const int m = static_cast<int>(s.rows), n = static_cast<int>(s.cols), cols = std::min(m, n);
  const int bytes = static_cast<int>(sizeof(float)) * cols * Columns<K>::kStride;
  const unsigned warps = std::min(kMostWarps, (cols + 1) / 2);
  check(cudaFuncSetAttribute(spectra_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "spectra");
  spectra_kernel<K>
      <<<blocks_for(s.count, 1, "spectra"), warps * kWarp, bytes, stream>>>(m, n, a, sigma, centered, sweeps);
  check_launch("spectra");
}

}  // namespace

void spectra(const Spectra& s, const float* a, double* sigma, double* centered, int32_t* sweeps,
             void* stream) {
  if (s.count == 0) return;
  using Launch = void (*)(const Spectra&, const float*, double*, double*, int32_t*, cudaStream_t);
  constexpr Launch kLaunch[] = {launch<1>, launch<2>, launch<3>, launch<4>, launch<5>, launch<6>, launch<7>};
  static_assert(std::size(kLaunch) * kWarp == kLongestSpectra);
  if (s.rows < 1 || s.cols < 1 || !spectra_fit(s.rows, s.cols))
    throw Error("a matrix that is empty or too large for a block").in("spectra");
  kLaunch[(std::max(s.rows, s.cols) - 1) / kWarp](s, a, sigma, centered, sweeps, as_stream(stream));
}

}  // namespace rankscope::cuda
