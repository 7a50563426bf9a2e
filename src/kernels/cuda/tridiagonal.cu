#include "kernels/cuda/tridiagonal.h"

#include <cooperative_groups.h>

#include <algorithm>
#include <cfloat>

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

namespace groups = cooperative_groups;

constexpr int kThreads = 256, kWarps = kThreads / static_cast<int>(kWarp);
constexpr int kLanes = static_cast<int>(kWarp);

__device__ double warp_total(double x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kEveryLane, x, step);
  return x;
}

/// The sum over the block, the same for all threads. `each` must not be in use by an earlier sum that some
/// thread has not read yet.
__device__ double block_total(double x, double* each) {
  x = warp_total(x);
  if (threadIdx.x % kWarp == 0) each[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += each[w];
  return sum;
}

/// The upper triangle: packed in the shared memory of the one block that has the matrix, or where it was
/// given.
template <bool kShared>
struct Rows {
  double* at;
  int n;
  /// row(i)[j] is entry (i, j), j >= i.
  __device__ double* row(int i) const {
    const int64_t start = static_cast<int64_t>(i) * n;
    return at + (kShared ? start - static_cast<int64_t>(i) * (i + 1) / 2 : start);
  }
};

/// The vectors of a step, all in shared memory, the same in every block but for the last four: the last
/// reflection takes u w^T + w u^T off the matrix, the next one is `next`, and `product` is the matrix times
/// it.
struct Vectors {
  double *u, *w, *next, *product;
  double* rows;        // of this block's rows: their part right of the diagonal times `next`
  double *even, *odd;  // this block's share of the product, of even and of odd steps
  double* partial;     // by warp
};

__host__ __device__ constexpr int64_t vector_doubles(int64_t n, int panel) {
  return 7 * n + int64_t{kWarps} * panel * kLanes;
}

__device__ Vectors vectors_at(double* shared, int n) {
  return {shared,         shared + n,     shared + 2 * n, shared + 3 * n,
          shared + 4 * n, shared + 5 * n, shared + 6 * n, shared + 7 * n};
}

template <int kBlocks>
__device__ void sync_blocks() {
  if (kBlocks > 1)
    groups::this_cluster().sync();
  else
    __syncthreads();
}

/// One panel of columns, kPanel a lane from `first` on, for this block's rows below k: the pending update,
/// and both halves of their product with v.next. A row belongs to one warp, a column of it to one lane.
template <int kBlocks, bool kShared, int kPanel>
__device__ void pass_panel(const Rows<kShared>& a, const Vectors& v, double* share, int rank, int k,
                           int first) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, n = a.n;
  const int end = min(n, first + kPanel * kLanes);
  double column[kPanel];
#pragma unroll
  for (int c = 0; c < kPanel; ++c) column[c] = 0;
  const int above = (k + kBlocks - rank) / kBlocks;  // of this block's rows, those up to k
  // Two rows at a time: what is read of the vectors serves both.
  for (int i = rank + kBlocks * (above + 2 * warp); i < end; i += 2 * kBlocks * kWarps) {
    const int l = i + kBlocks;
    const bool both = l < end;
    double *row = a.row(i), *next_row = a.row(both ? l : i);
    const double ui = v.u[i], wi = v.w[i], ni = v.next[i];
    const double ul = both ? v.u[l] : 0, wl = both ? v.w[l] : 0, nl = both ? v.next[l] : 0;
    double x[kPanel], y[kPanel], sum = 0, next_sum = 0;
#pragma unroll
    for (int c = 0; c < kPanel; ++c) {
      const int j = first + c * kLanes + lane;
      x[c] = j >= i && j < n ? row[j] : 0.0;
      y[c] = both && j >= l && j < n ? next_row[j] : 0.0;
    }
#pragma unroll
    for (int c = 0; c < kPanel; ++c) {
      const int j = first + c * kLanes + lane;
      if (j < i || j >= n) continue;
      const double uj = v.u[j], wj = v.w[j], nj = v.next[j];
      const double now = fma(-wi, uj, fma(-ui, wj, x[c]));
      row[j] = now;
      sum = fma(now, nj, sum);
      if (j > i) column[c] = fma(now, ni, column[c]);
      if (!both || j < l) continue;
      const double then = fma(-wl, uj, fma(-ul, wj, y[c]));
      next_row[j] = then;
      next_sum = fma(then, nj, next_sum);
      if (j > l) column[c] = fma(then, nl, column[c]);
    }
    sum = warp_total(sum);
    next_sum = warp_total(next_sum);
    if (lane == 0) {  // its own panel comes first
      v.rows[i] = first <= i ? sum : v.rows[i] + sum;
      if (both) v.rows[l] = first <= l ? next_sum : v.rows[l] + next_sum;
    }
  }
#pragma unroll
  for (int c = 0; c < kPanel; ++c) v.partial[warp * kPanel * kLanes + c * kLanes + lane] = column[c];
  __syncthreads();
  for (int j = max(first, k + 1) + static_cast<int>(threadIdx.x); j < end; j += kThreads) {
    double sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += v.partial[w * kPanel * kLanes + j - first];
    share[j] = sum;
  }
  __syncthreads();  // `partial` is used again by the next panel
}

// A cluster of kBlocks blocks takes a matrix. They meet once a step, to add up what their rows say of the
// product; everything else they compute alike.
template <int kBlocks, bool kShared, int kPanel>
__global__ __launch_bounds__(kThreads) void tridiagonalise_kernel(int n, double* g, double* d, double* e) {
  extern __shared__ double shared[];
  __shared__ double tails[kWarps], dots[kWarps];
  const int rank = static_cast<int>(blockIdx.x % kBlocks), t = static_cast<int>(threadIdx.x);
  const int64_t matrix = blockIdx.x / kBlocks;
  const Vectors v = vectors_at(shared, n);
  g += matrix * n * n;
  d += matrix * n;
  e += matrix * n;
  const Rows<kShared> a{kShared ? shared + vector_doubles(n, kPanel) : g, n};
  if (kShared)
    for (int i = t / kLanes; i < n; i += kWarps)
      for (int j = i + t % kLanes; j < n; j += kLanes) a.row(i)[j] = g[static_cast<int64_t>(i) * n + j];
  for (int j = t; j < n; j += kThreads) v.u[j] = v.w[j] = 0;
  sync_blocks<kBlocks>();

  for (int k = 0; k + 2 < n; ++k) {
    // Row k as the reflections so far leave it, and the reflection that clears it beyond k + 1.
    double tail = 0;
    const double uk = v.u[k], wk = v.w[k];
    const double* row = a.row(k);
    for (int j = k + t; j < n; j += kThreads) {
      const double x = fma(-wk, v.u[j], fma(-uk, v.w[j], row[j]));
      v.next[j] = x;
      if (j == k && rank == 0) d[k] = x;
      if (j > k + 1) tail = fma(x, x, tail);
    }
    tail = block_total(tail, tails);
    const double first = v.next[k + 1], square = fma(first, first, tail);
    const double head = first + copysign(sqrt(square), first);
    const bool idle = tail == 0;  // the row is clear already
    const double beta = idle ? 0.0 : 2 / fma(head, head, tail);
    __syncthreads();  // everybody has read next[k + 1]
    if (t == 0) {
      if (rank == 0) e[k] = square;
      v.next[k + 1] = head;
    }
    __syncthreads();

    // Two buffers: a block may begin the next step while another still reads this one's.
    double* share = k % 2 == 0 ? v.even : v.odd;
    constexpr int kWide = kPanel * kLanes;
    for (int panel = (k + 1) / kWide * kWide; panel < n; panel += kWide)
      pass_panel<kBlocks, kShared, kPanel>(a, v, share, rank, k, panel);
    for (int i = k + 1 + t; i < n; i += kThreads)
      if (i % kBlocks == rank) share[i] += v.rows[i];
    sync_blocks<kBlocks>();

    // With p = beta A next, w = p - beta / 2 (next . p) next.
    double dot = 0;
    for (int j = k + 1 + t; j < n; j += kThreads) {
      double product = 0;
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        product += kBlocks == 1 ? share[j] : groups::this_cluster().map_shared_rank(share, b)[j];
      v.product[j] = product;
      dot = fma(v.next[j], product, dot);
    }
    dot = block_total(dot, dots);
    const double half = 0.5 * beta * beta * dot;
    for (int j = k + 1 + t; j < n; j += kThreads) {
      v.u[j] = idle ? 0.0 : v.next[j];
      v.w[j] = idle ? 0.0 : fma(beta, v.product[j], -half * v.next[j]);
    }
    __syncthreads();
  }
  if (t == 0 && rank == 0) {  // the last two rows need no reflection
    const auto now = [&](int i, int j) { return fma(-v.w[i], v.u[j], fma(-v.u[i], v.w[j], a.row(i)[j])); };
    if (n > 1) {
      const double beside = now(n - 2, n - 1);
      d[n - 2] = now(n - 2, n - 2);
      e[n - 2] = beside * beside;
    }
    d[n - 1] = now(n - 1, n - 1);
    e[n - 1] = 0;
  }
  if (kBlocks > 1) sync_blocks<kBlocks>();  // nobody leaves while its share is being read
}

template <int kBlocks, bool kShared, int kPanel>
void launch_reduction(int64_t count, int64_t n, double* g, double* d, double* e, void* stream) {
  static_assert(kBlocks == 1 || !kShared);
  const int64_t doubles = vector_doubles(n, kPanel) + (kShared ? n * (n + 1) / 2 : 0);
  const auto bytes = static_cast<unsigned>(doubles * static_cast<int64_t>(sizeof(double)));
  const auto kernel = tridiagonalise_kernel<kBlocks, kShared, kPanel>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "tridiagonalise");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks_for(count * kBlocks, 1, "tridiagonalise"));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = as_stream(stream);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kBlocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<int>(n), g, d, e), "tridiagonalise");
}

/// From so many matrices on one block each fills a device; fewer are shared by four.
constexpr int64_t kMany = 64;

constexpr int kBisectionThreads = 512;

/// How many eigenvalues lie below x (Sturm): signs of the pivots of T - x.
__device__ int below(const double* d, const double* e, int n, double x, double smallest) {
  double q = d[0] - x;
  int count = q < 0;
  for (int i = 1; i < n; ++i) {
    if (fabs(q) < smallest) q = -smallest;
    q = d[i] - x - e[i - 1] / q;
    count += q < 0;
  }
  return count;
}

__device__ double block_most(double x, double* each, int warps) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = fmax(x, __shfl_xor_sync(kEveryLane, x, step));
  if (threadIdx.x % kWarp == 0) each[threadIdx.x / kWarp] = x;
  __syncthreads();
  for (int w = 0; w < warps; ++w) x = fmax(x, each[w]);
  return x;
}

__global__ __launch_bounds__(kBisectionThreads) void bisection_kernel(Bisection what, const double* d_in,
                                                                      const double* e_in,
                                                                      const double* offset, double* values) {
  extern __shared__ double shared[];
  __shared__ double highs[kBisectionThreads / kLanes], lows[kBisectionThreads / kLanes],
      squares[kBisectionThreads / kLanes];
  const int n = static_cast<int>(what.size - what.first), wanted = static_cast<int>(what.wanted);
  const int t = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x / kWarp);
  double *d = shared, *e = shared + n;
  const int64_t from = blockIdx.x * what.size + what.first;
  bool bad = false;
  for (int i = t; i < n; i += static_cast<int>(blockDim.x)) {
    d[i] = d_in[from + i] + (i == 0 && offset != nullptr ? offset[blockIdx.x] : 0.0);
    e[i] = i + 1 < n ? e_in[from + i] : 0.0;
    bad = bad || !(fabs(d[i]) <= DBL_MAX) || !(e[i] <= DBL_MAX);
  }
  values += int64_t{blockIdx.x} * wanted;
  if (__syncthreads_or(bad)) {
    for (int i = t; i < wanted; i += static_cast<int>(blockDim.x)) values[i] = NAN;
    return;
  }
  // Gershgorin: no eigenvalue lies further from a diagonal entry than what stands beside it.
  double high = -DBL_MAX, low = DBL_MAX, square = 0;
  for (int i = t; i < n; i += static_cast<int>(blockDim.x)) {
    const double reach = sqrt(e[i]) + (i > 0 ? sqrt(e[i - 1]) : 0.0);
    high = fmax(high, d[i] + reach);
    low = fmin(low, d[i] - reach);
    square = fmax(square, e[i]);
  }
  high = block_most(high, highs, warps);
  low = -block_most(-low, lows, warps);
  square = block_most(square, squares, warps);
  const double size = fmax(fabs(high), fabs(low)), close = size * DBL_EPSILON / 2;
  const double smallest = DBL_MIN * fmax(1.0, square);
  for (int i = t; i < wanted; i += static_cast<int>(blockDim.x)) {
    double bottom = low - close, top = high + close;
    while (top - bottom > close) {  // halves every time: at most 54 rounds
      const double middle = 0.5 * (bottom + top);
      if (middle <= bottom || middle >= top) break;
      if (below(d, e, n, middle, smallest) > n - 1 - i)
        top = middle;
      else
        bottom = middle;
    }
    values[i] = 0.5 * (bottom + top);
  }
}

}  // namespace

void tridiagonalise(int64_t count, int64_t size, double* g, double* d, double* e, void* stream) {
  if (count == 0) return;
  if (size > kLongestTridiagonal)
    throw Error("too large for the reduction to tridiagonal form").in("tridiagonalise");
  if (size <= kLongestAlone)
    launch_reduction<1, true, 7>(count, size, g, d, e, stream);
  else if (count >= kMany)
    launch_reduction<1, false, 9>(count, size, g, d, e, stream);
  else
    launch_reduction<4, false, 9>(count, size, g, d, e, stream);
}

void tridiagonal_eigenvalues(const Bisection& what, const double* d, const double* e, const double* offset,
                             double* values, void* stream) {
  if (what.count == 0 || what.wanted == 0) return;
  const int64_t n = what.size - what.first;
  if (what.count > 0x7fffffff || n > kLongestTridiagonal || what.wanted > n)
    throw Error("too large for bisection").in("tridiagonal_eigenvalues");
  const auto bytes = static_cast<int>(2 * n * static_cast<int64_t>(sizeof(double)));
  const auto threads = static_cast<unsigned>(std::clamp<int64_t>((n + 31) / 32 * 32, 32, kBisectionThreads));
  check(cudaFuncSetAttribute(bisection_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "tridiagonal_eigenvalues");
  bisection_kernel<<<static_cast<unsigned>(what.count), threads, static_cast<size_t>(bytes),
                     as_stream(stream)>>>(what, d, e, offset, values);
  check_launch("tridiagonal_eigenvalues");
}

}  // namespace rankscope::cuda
