// Heads of width 1 and 2 over 16 keys. One thread owns one head of one sequence: its keys and values stay in
// registers, its queries wait in shared memory (brought there asynchronously, each thread's own), and
// neighbouring threads own neighbouring columns, so that every row is read and written in whole lines.
#include <cuda_pipeline.h>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kKeys = 16, kThreads = 128;

template <int W>
struct Columns;
template <>
struct Columns<1> {
  using Vector = float;
};
template <>
struct Columns<2> {
  using Vector = float2;
};

template <int W>
__device__ __forceinline__ void load(const float* from, float (&to)[W]) {
  using Vector = typename Columns<W>::Vector;
  *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Vector*>(from);
}

template <int W>
__device__ __forceinline__ void store(float* to, const float (&from)[W]) {
  using Vector = typename Columns<W>::Vector;
  *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Vector*>(from);
}

template <int W>
__device__ __forceinline__ float dot(const float (&a)[W], const float (&b)[W]) {
  float sum = a[0] * b[0];
#pragma unroll
  for (int c = 1; c < W; ++c) sum = fmaf(a[c], b[c], sum);
  return sum;
}

// This thread's place: which trial, which rows, which columns.
struct Place {
  int trial, column;
  int64_t row;
  float scale;
};

template <int W>
__device__ __forceinline__ bool find_place(const Group& group, Place& place) {
  const int64_t unit = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t sequence = unit / group.heads;
  if (sequence >= group.sequences) return false;
  place = {group.trial[blockIdx.y], static_cast<int>(unit - sequence * group.heads) * W, sequence * kKeys,
           group.scale[blockIdx.y]};
  return true;
}

// Starts bringing the 16 rows of this thread's columns to shared memory.
template <int W>
__device__ __forceinline__ void start_rows(const Operand<const float>& x, const Place& place,
                                           float (*rows)[kThreads][W]) {
#pragma unroll
  for (int i = 0; i < kKeys; ++i)
    __pipeline_memcpy_async(rows[i][threadIdx.x], x.at(place.trial, place.row + i) + place.column,
                            sizeof(float) * W);
}

template <int W>
__device__ __forceinline__ void load_rows(const Operand<const float>& x, const Place& place,
                                          float (&rows)[kKeys][W]) {
#pragma unroll
  for (int j = 0; j < kKeys; ++j) load<W>(x.at(place.trial, place.row + j) + place.column, rows[j]);
}

// The largest of q * k_j. At width 1 it lies at the largest or the smallest key, whatever the query.
template <int W>
struct Peak {
  float low = 0, high = 0;
  __device__ explicit Peak(const float (&k)[kKeys][W]) {
    if constexpr (W == 1) {
      low = high = k[0][0];
#pragma unroll
      for (int j = 1; j < kKeys; ++j) {
        low = fminf(low, k[j][0]);
        high = fmaxf(high, k[j][0]);
      }
    }
  }
  __device__ float operator()(const float (&q)[W], const float (&k)[kKeys][W]) const {
    if constexpr (W == 1) return q[0] * (q[0] < 0 ? low : high);
    float peak = dot<W>(q, k[0]);
#pragma unroll
    for (int j = 1; j < kKeys; ++j) peak = fmaxf(peak, dot<W>(q, k[j]));
    return peak;
  }
};

// 2^(<q, k_j> - peak) for all keys; returns their sum.
template <int W>
__device__ __forceinline__ float powers(const float (&q)[W], const float (&k)[kKeys][W], float peak,
                                        float (&e)[kKeys]) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    float exponent = -peak;
#pragma unroll
    for (int c = 0; c < W; ++c) exponent = fmaf(q[c], k[j][c], exponent);
    e[j] = exp2_fast(exponent);
    sum += e[j];
  }
  return sum;
}

template <int W>
__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f) {
  __shared__ float queries[kKeys][kThreads][W];
  Place place;
  if (!find_place<W>(f.group, place)) return;
  start_rows<W>(f.q, place, queries);
  __pipeline_commit();
  float k[kKeys][W], v[kKeys][W];
  load_rows<W>(f.k, place, k);
  load_rows<W>(f.v, place, v);
  __pipeline_wait_prior(0);

  const float scale = place.scale * kLog2E;
  const Peak<W> peak(k);
#pragma unroll 4
  for (int i = 0; i < kKeys; ++i) {
    float q[W], e[kKeys], out[W] = {};
#pragma unroll
    for (int c = 0; c < W; ++c) q[c] = queries[i][threadIdx.x][c] * scale;
    const float share = 1.0f / powers<W>(q, k, peak(q, k), e);
#pragma unroll
    for (int j = 0; j < kKeys; ++j)
#pragma unroll
      for (int c = 0; c < W; ++c) out[c] = fmaf(e[j], v[j][c], out[c]);
#pragma unroll
    for (int c = 0; c < W; ++c) out[c] *= share;
    store<W>(f.out.at(place.trial, place.row + i) + place.column, out);
  }
}

template <int W>
__global__ __launch_bounds__(kThreads) void backward_kernel(const __grid_constant__ Backward b) {
  __shared__ float queries[kKeys][kThreads][W], gradients[kKeys][kThreads][W];
  Place place;
  if (!find_place<W>(b.group, place)) return;
  start_rows<W>(b.q, place, queries);
  start_rows<W>(b.dout, place, gradients);
  __pipeline_commit();
  float k[kKeys][W], v[kKeys][W], dk[kKeys][W] = {}, dv[kKeys][W] = {};
  load_rows<W>(b.k, place, k);
  load_rows<W>(b.v, place, v);
  __pipeline_wait_prior(0);

  const float scale = place.scale * kLog2E;
  const Peak<W> peak(k);
#pragma unroll 2
  for (int i = 0; i < kKeys; ++i) {
    float q[W], g[W], e[kKeys], dq[W] = {};
#pragma unroll
    for (int c = 0; c < W; ++c) q[c] = queries[i][threadIdx.x][c] * scale;
    const float share = 1.0f / powers<W>(q, k, peak(q, k), e);
    // With g = dout / sum the weights e need no division of their own: p_j = e_j / sum.
#pragma unroll
    for (int c = 0; c < W; ++c) g[c] = gradients[i][threadIdx.x][c] * share;
    float mean = 0;  // sum_j p_j <g, v_j>
#pragma unroll
    for (int j = 0; j < kKeys; ++j) mean = fmaf(e[j], dot<W>(g, v[j]), mean);
    mean *= share;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      float ds = -mean;
#pragma unroll
      for (int c = 0; c < W; ++c) ds = fmaf(g[c], v[j][c], ds);
      ds *= e[j];
#pragma unroll
      for (int c = 0; c < W; ++c) {
        dq[c] = fmaf(ds, k[j][c], dq[c]);
        dk[j][c] = fmaf(ds, q[c], dk[j][c]);
        dv[j][c] = fmaf(e[j], g[c], dv[j][c]);
      }
    }
#pragma unroll
    for (int c = 0; c < W; ++c) dq[c] *= place.scale;
    store<W>(b.dq.at(place.trial, place.row + i) + place.column, dq);
  }
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
#pragma unroll
    for (int c = 0; c < W; ++c) dk[j][c] *= 1.0f / kLog2E;  // q carried scale * log2(e)
    store<W>(b.dk.at(place.trial, place.row + j) + place.column, dk[j]);
    if (b.dv.data != nullptr) store<W>(b.dv.at(place.trial, place.row + j) + place.column, dv[j]);
  }
}

dim3 grid_of(const Group& group, const char* kernel) {
  return dim3(blocks_for(int64_t{group.sequences} * group.heads, kThreads, kernel), group.members);
}

}  // namespace

template <int W>
void narrow_forward(const Forward& f, cudaStream_t stream) {
  forward_kernel<W><<<grid_of(f.group, "narrow_forward"), kThreads, 0, stream>>>(f);
  check_launch("narrow_forward");
}

template <int W>
void narrow_backward(const Backward& b, cudaStream_t stream) {
  backward_kernel<W><<<grid_of(b.group, "narrow_backward"), kThreads, 0, stream>>>(b);
  check_launch("narrow_backward");
}

template void narrow_forward<1>(const Forward&, cudaStream_t);
template void narrow_forward<2>(const Forward&, cudaStream_t);
template void narrow_backward<1>(const Backward&, cudaStream_t);
template void narrow_backward<2>(const Backward&, cudaStream_t);

}  // namespace rankscope::cuda
