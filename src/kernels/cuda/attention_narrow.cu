// Heads of width 1 to 8 over 16 keys. S neighbouring threads own one head of one sequence and share its keys:
// a thread's keys, values and their gradients stay in registers, queries wait in shared memory (brought there
// asynchronously), and neighbouring heads lie in neighbouring threads, so that rows are read and written in
// whole lines.
#include <cuda_pipeline.h>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kTokens = 16, kThreads = 128;

// W columns a head, S threads a head: each has W / S columns of a row to bring and to write, and 16 / S keys.
template <int W, int S>
struct Shape {
  static constexpr int kKeys = kTokens / S, kOwn = W / S, kColumns = kThreads * kOwn;
  using Rows = float[kTokens][kColumns];  // of this block's heads, in shared memory
};

struct Place {
  int trial, column, part;  // the head's first column; which of its threads this is
  int64_t row;
  float scale;
};

template <int W, int S>
__device__ __forceinline__ bool find_place(const Group& group, Place& place) {
  const int64_t unit = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / S;
  const int64_t sequence = unit / group.heads;
  place = {group.trial[blockIdx.y], static_cast<int>(unit - sequence * group.heads) * W,
           static_cast<int>(threadIdx.x % S), sequence * kTokens, group.scale[blockIdx.y]};
  return sequence < group.sequences;
}

// The threads of a head speak to each other alone: others of the warp may have left.
template <int S>
__device__ __forceinline__ unsigned head_mask() {
  return S == 32 ? kEveryLane : ((1u << S) - 1) << (threadIdx.x % kWarp / S * S);
}

template <int S>
__device__ __forceinline__ float head_sum(float x) {
#pragma unroll
  for (int step = S / 2; step > 0; step /= 2) x += __shfl_xor_sync(head_mask<S>(), x, step);
  return x;
}

template <int S>
__device__ __forceinline__ float head_max(float x) {
#pragma unroll
  for (int step = S / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(head_mask<S>(), x, step));
  return x;
}

// Adds a row of W columns over the threads of a head; each is left with the W / S columns it writes.
template <int W, int S>
__device__ __forceinline__ void head_sum_own(float (&x)[W], int part) {
  int left = W / 2;
#pragma unroll
  for (int step = S / 2; step > 0; step /= 2, left /= 2) {
    const bool upper = (part & step) != 0;
#pragma unroll
    for (int c = 0; c < left; ++c) {
      const float mine = upper ? x[c + left] : x[c], other = upper ? x[c] : x[c + left];
      x[c] = mine + __shfl_xor_sync(head_mask<S>(), other, step);
    }
  }
}

template <int W>
__device__ __forceinline__ void load(const float* from, float (&to)[W]) {
  constexpr int kWide = W < 4 ? W : 4;
#pragma unroll
  for (int c = 0; c < W; c += kWide) load_floats<kWide>(from + c, to + c);
}

template <int W>
__device__ __forceinline__ void store(float* to, const float (&from)[W]) {
  constexpr int kWide = W < 4 ? W : 4;
#pragma unroll
  for (int c = 0; c < W; c += kWide) store_floats<kWide>(to + c, from + c);
}

template <int W>
__device__ __forceinline__ float dot(const float (&a)[W], const float (&b)[W], float sum = 0) {
#pragma unroll
  for (int c = 0; c < W; ++c) sum = fmaf(a[c], b[c], sum);
  return sum;
}

// Starts bringing the rows of this block's heads to shared memory, each thread its own columns.
template <int W, int S>
__device__ __forceinline__ void start_rows(const Operand<const float>& x, const Place& place,
                                           typename Shape<W, S>::Rows& rows) {
  constexpr int kOwn = Shape<W, S>::kOwn;
#pragma unroll
  for (int i = 0; i < kTokens; ++i)
    __pipeline_memcpy_async(&rows[i][threadIdx.x * kOwn],
                            x.at(place.trial, place.row + i) + place.column + place.part * kOwn,
                            sizeof(float) * kOwn);
}

// Waits for them: a head's threads read each other's columns.
template <int S>
__device__ __forceinline__ void finish_rows() {
  __pipeline_wait_prior(0);
  if constexpr (S > 1) __syncwarp(head_mask<S>());
}

// This thread's keys: part, part + S, ...
template <int W, int S>
__device__ __forceinline__ void load_keys(const Operand<const float>& x, const Place& place,
                                          float (&keys)[Shape<W, S>::kKeys][W]) {
#pragma unroll
  for (int j = 0; j < Shape<W, S>::kKeys; ++j)
    load<W>(x.at(place.trial, place.row + j * S + place.part) + place.column, keys[j]);
}

template <int W, int S>
__device__ __forceinline__ void store_keys(const Operand<float>& x, const Place& place,
                                           const float (&keys)[Shape<W, S>::kKeys][W]) {
#pragma unroll
  for (int j = 0; j < Shape<W, S>::kKeys; ++j)
    store<W>(x.at(place.trial, place.row + j * S + place.part) + place.column, keys[j]);
}

// Powers 2^(<q, k_j> - largest), in e; returns one over their sum over all keys.
template <int W, int S>
class Powers {
 public:
  __device__ __forceinline__ explicit Powers(const float (&k)[Shape<W, S>::kKeys][W]) {
    if constexpr (W == 1) {
      low_ = high_ = k[0][0];
#pragma unroll
      for (int j = 1; j < kTokens; ++j) {
        low_ = fminf(low_, k[j][0]);
        high_ = fmaxf(high_, k[j][0]);
      }
    }
  }
  __device__ __forceinline__ float operator()(const float (&q)[W], const float (&k)[Shape<W, S>::kKeys][W],
                                              float (&e)[Shape<W, S>::kKeys]) const {
    constexpr int kKeys = Shape<W, S>::kKeys;
    float sum = 0;
    if constexpr (W == 1) {  // the largest product is at the largest or the smallest key, whatever the query
      const float peak = q[0] * (q[0] < 0 ? low_ : high_);
#pragma unroll
      for (int j = 0; j < kKeys; ++j) sum += e[j] = exp2_fast(fmaf(q[0], k[j][0], -peak));
      return 1.0f / sum;
    }
    float peak = -INFINITY;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      e[j] = dot<W>(q, k[j]);
      peak = fmaxf(peak, e[j]);
    }
    peak = head_max<S>(peak);
#pragma unroll
    for (int j = 0; j < kKeys; ++j) sum += e[j] = exp2_fast(e[j] - peak);
    return 1.0f / head_sum<S>(sum);
  }

 private:
  float low_ = 0, high_ = 0;
};

template <int W, int S>
__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f) {
  using Sh = Shape<W, S>;
  __shared__ alignas(16) typename Sh::Rows queries;
  Place place;
  if (!find_place<W, S>(f.group, place)) return;
  start_rows<W, S>(f.q, place, queries);
  __pipeline_commit();
  alignas(16) float k[Sh::kKeys][W], v[Sh::kKeys][W];
  load_keys<W, S>(f.k, place, k);
  load_keys<W, S>(f.v, place, v);
  finish_rows<S>();

  const float scale = place.scale * kLog2E;
  const int head = threadIdx.x / S * W;
  const Powers<W, S> powers(k);
#pragma unroll 4
  for (int i = 0; i < kTokens; ++i) {
    alignas(16) float q[W];
    float e[Sh::kKeys], out[W] = {};
    load<W>(&queries[i][head], q);
#pragma unroll
    for (int c = 0; c < W; ++c) q[c] *= scale;
    const float share = powers(q, k, e);
#pragma unroll
    for (int j = 0; j < Sh::kKeys; ++j)
#pragma unroll
      for (int c = 0; c < W; ++c) out[c] = fmaf(e[j], v[j][c], out[c]);
    head_sum_own<W, S>(out, place.part);
    alignas(16) float own[Sh::kOwn];
#pragma unroll
    for (int c = 0; c < Sh::kOwn; ++c) own[c] = out[c] * share;
    store<Sh::kOwn>(f.out.at(place.trial, place.row + i) + place.column + place.part * Sh::kOwn, own);
  }
}

// Width 8 would leave registers for two blocks a processor: a third hides more than its few spills cost.
template <int W, int S>
__global__ __launch_bounds__(kThreads,
                             W == 8 ? 3 : 1) void backward_kernel(const __grid_constant__ Backward b) {
  using Sh = Shape<W, S>;
  __shared__ alignas(16) typename Sh::Rows queries;
  __shared__ alignas(16) typename Sh::Rows gradients;
  Place place;
  if (!find_place<W, S>(b.group, place)) return;
  start_rows<W, S>(b.q, place, queries);
  start_rows<W, S>(b.dout, place, gradients);
  __pipeline_commit();
  alignas(16) float k[Sh::kKeys][W], v[Sh::kKeys][W], dk[Sh::kKeys][W] = {}, dv[Sh::kKeys][W] = {};
  load_keys<W, S>(b.k, place, k);
  load_keys<W, S>(b.v, place, v);
  finish_rows<S>();

  const float scale = place.scale * kLog2E;
  const int head = threadIdx.x / S * W;
  const Powers<W, S> powers(k);
#pragma unroll(W == 8 ? 1 : 2)
  for (int i = 0; i < kTokens; ++i) {
    alignas(16) float q[W], g[W];
    float e[Sh::kKeys], ds[Sh::kKeys], dq[W] = {};
    load<W>(&queries[i][head], q);
    load<W>(&gradients[i][head], g);
#pragma unroll
    for (int c = 0; c < W; ++c) q[c] *= scale;
    const float share = powers(q, k, e);
    // With g = dout / sum the weights p_j = e_j / sum need no division of their own.
#pragma unroll
    for (int c = 0; c < W; ++c) g[c] *= share;
    float mean = 0;  // sum_j p_j <g, v_j>
#pragma unroll
    for (int j = 0; j < Sh::kKeys; ++j) {
      ds[j] = W == 1 ? v[j][0] : dot<W>(g, v[j]);
      mean = fmaf(e[j], ds[j], mean);
    }
    mean = head_sum<S>(mean) * share * (W == 1 ? g[0] : 1.0f);
#pragma unroll
    for (int j = 0; j < Sh::kKeys; ++j) {
      ds[j] = e[j] * (W == 1 ? fmaf(g[0], ds[j], -mean) : ds[j] - mean);
#pragma unroll
      for (int c = 0; c < W; ++c) {
        dq[c] = fmaf(ds[j], k[j][c], dq[c]);
        dk[j][c] = fmaf(ds[j], q[c], dk[j][c]);
        dv[j][c] = fmaf(e[j], g[c], dv[j][c]);
      }
    }
    head_sum_own<W, S>(dq, place.part);
    alignas(16) float own[Sh::kOwn];
#pragma unroll
    for (int c = 0; c < Sh::kOwn; ++c) own[c] = dq[c] * place.scale;
    store<Sh::kOwn>(b.dq.at(place.trial, place.row + i) + place.column + place.part * Sh::kOwn, own);
  }
#pragma unroll
  for (int j = 0; j < Sh::kKeys; ++j)
#pragma unroll
    for (int c = 0; c < W; ++c) dk[j][c] *= 1.0f / kLog2E;  // q carried scale * log2(e)
  store_keys<W, S>(b.dk, place, dk);
  if (b.dv.data != nullptr) store_keys<W, S>(b.dv, place, dv);
}

dim3 grid_of(const Group& group, int threads_per_head, const char* kernel) {
  return dim3(blocks_for(int64_t{group.sequences} * group.heads * threads_per_head, kThreads, kernel),
              group.members);
}

}  // namespace

template <int W>
void narrow_forward(const Forward& f, cudaStream_t stream) {
  constexpr int S = W < 4 ? 1 : W / 2;  // threads a head
  forward_kernel<W, S><<<grid_of(f.group, S, "narrow_forward"), kThreads, 0, stream>>>(f);
  check_launch("narrow_forward");
}

template <int W>
void narrow_backward(const Backward& b, cudaStream_t stream) {
  // More threads a head need fewer registers each, but more sums over threads: the fastest of those measured.
  constexpr int S = W < 4 ? 1 : 4;
  backward_kernel<W, S><<<grid_of(b.group, S, "narrow_backward"), kThreads, 0, stream>>>(b);
  check_launch("narrow_backward");
}

#define RANKSCOPE_WIDTH(W)                                       \
  template void narrow_forward<W>(const Forward&, cudaStream_t); \
  template void narrow_backward<W>(const Backward&, cudaStream_t);
RANKSCOPE_WIDTH(1)
RANKSCOPE_WIDTH(2)
RANKSCOPE_WIDTH(4)
RANKSCOPE_WIDTH(8)
#undef RANKSCOPE_WIDTH

}  // namespace rankscope::cuda
