// Tiles of 64 queries by 64 keys, in the registers of one block. The first pass goes along the keys with a
// softmax that is corrected as larger scores come; the second knows every row's sum and goes down the queries
// for the columns, making the scores anew by the same sums in the same order. Float32 throughout; sums over
// more than a tile are double precision's.
#include "kernels/cuda/long_attention.h"

#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kTile = 64;  // queries, and keys
constexpr int kSide = 16;  // of the square of threads; each has 4 x 4 of a tile
constexpr int kThreads = kSide * kSide;
constexpr int kWidest = 128;           // channels of a head
constexpr int kWeightRow = kTile + 4;  // of the attention in shared memory: no two stores meet in a bank
constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.693147180559945309417;

struct Seen {  // keys [first, end) of a query
  int64_t first, end;
};

__device__ __forceinline__ Seen seen(const LongAttention& a, int64_t query) {
  Seen s{0, a.keys};
  if (a.window > 0) s = {max(int64_t{0}, query - a.window + 1), min(a.keys, query + a.window)};
  if (a.causal) s.end = min(s.end, query + 1);
  return s;
}

/// Sum or largest over the 16 threads that share a row of the tile.
template <class Join>
__device__ __forceinline__ float over_row(float x, Join join) {
#pragma unroll
  for (int step = kSide / 2; step > 0; step /= 2) x = join(x, __shfl_xor_sync(kEveryLane, x, step));
  return x;
}

/// Rows [count, width] that lie `stride` apart, as columns [width, kTile] times `factor`; zero behind the
/// last.
__device__ __forceinline__ void load_turned(const float* from, int64_t stride, int count, int width,
                                            float factor, float* to) {
  const int r = static_cast<int>(threadIdx.x) % kTile;
  for (int c = 4 * (static_cast<int>(threadIdx.x) / kTile); c < width; c += 4 * (kThreads / kTile)) {
    const float4 x = r < count ? *reinterpret_cast<const float4*>(from + r * stride + c) : float4{0, 0, 0, 0};
    to[c * kTile + r] = factor * x.x;
    to[(c + 1) * kTile + r] = factor * x.y;
    to[(c + 2) * kTile + r] = factor * x.z;
    to[(c + 3) * kTile + r] = factor * x.w;
  }
}

/// Which key of the tile stands in row r of the attention and of the values: the thread in column x has keys
/// 4x to 4x + 3, and puts them 16 rows apart.
__device__ __forceinline__ int key_of_row(int r) { return 4 * (r % kSide) + r / kSide; }

/// Values [count, width] to rows of `room` floats in that order; zero behind the last and beside the width.
__device__ __forceinline__ void load_values(const float* from, int count, int width, int room, float* to) {
  for (int i = 4 * static_cast<int>(threadIdx.x); i < kTile * room; i += 4 * kThreads) {
    const int key = key_of_row(i / room), c = i % room;
    *reinterpret_cast<float4*>(to + i) = key < count && c < width
                                             ? *reinterpret_cast<const float4*>(from + key * width + c)
                                             : float4{0, 0, 0, 0};
  }
}

/// scores[i][j] of query 4y + i and key 4x + j of the tile.
__device__ __forceinline__ void products(const float* q, const float* k, int width, int x, int y,
                                         float (&scores)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) scores[i][j] = 0;
#pragma unroll 4
  for (int c = 0; c < width; ++c) {
    const float4 a = *reinterpret_cast<const float4*>(q + c * kTile + 4 * y),
                 b = *reinterpret_cast<const float4*>(k + c * kTile + 4 * x);
    const float query[4] = {a.x, a.y, a.z, a.w}, key[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) scores[i][j] += query[i] * key[j];
  }
}

/// -inf where a query does not see a key, or where there is none.
__device__ __forceinline__ void hide(const LongAttention& a, int64_t first_query, int64_t first_key, int x,
                                     int y, float (&scores)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Seen s = seen(a, first_query + 4 * y + i);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t key = first_key + 4 * x + j;
      if (key < s.first || key >= s.end) scores[i][j] = -INFINITY;
    }
  }
}

/// A row's softmax so far: the largest score, the sum of 2^(score - largest), and of that times its exponent.
struct Row {
  float top = -INFINITY;
  double sum = 0, weighted = 0;

  /// Takes four scores of each of the 16 threads, which become exponentials; says what those before are now
  /// multiplied by.
  __device__ __forceinline__ float take(float (&scores)[4]) {
    const auto larger = [](float a, float b) { return fmaxf(a, b); };
    const auto add = [](float a, float b) { return a + b; };
    const float largest = over_row(fmaxf(fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3])), larger);
    const float before = top;
    top = fmaxf(before, largest);
    const float base = top == -INFINITY ? 0.0f : top;  // nothing seen so far: exponentials are 0
    float part = 0, part_weighted = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float t = scores[j] - base, e = exp2f(t);
      scores[j] = e;
      part += e;
      if (e > 0) part_weighted += e * t;
    }
    part = over_row(part, add);
    part_weighted = over_row(part_weighted, add);
    const bool is_first = before == -INFINITY;
    const float drop = is_first ? 0.0f : before - top, kept = is_first ? 0.0f : exp2f(drop);
    weighted = kept * (weighted + drop * sum) + part_weighted;
    sum = kept * sum + part;
    return kept;
  }
};

template <int kGroups>  // of 64 channels of a value
__global__ __launch_bounds__(kThreads, 2) void forward_kernel(LongAttention a, LongOperands in,
                                                              LongResults out, float2* rows) {
  extern __shared__ float4 shared[];
  const int width = static_cast<int>(a.width_qk), room = kTile * kGroups;
  float* q = reinterpret_cast<float*>(shared);
  float* p = q + width * kTile;  // [kTile, kWeightRow]
  float* keys_or_values = p + kTile * kWeightRow;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const int64_t first = int64_t{blockIdx.x} * kTile, head = blockIdx.y, sample = blockIdx.z;
  const int count = static_cast<int>(min(int64_t{kTile}, a.queries - first));
  const float* k = in.k + (sample * a.key_heads + head / (a.heads / a.key_heads)) * a.keys * a.width_qk;
  const float* v = in.v + (sample * a.value_heads + head / (a.heads / a.value_heads)) * a.keys * a.width_v;
  load_turned(in.q + ((sample * a.queries + first) * a.heads + head) * a.width_qk, a.heads * a.width_qk,
              count, width, static_cast<float>(a.scale * kLog2E), q);

  Row row[4];
  float carried[4][4 * kGroups] = {};
  const int64_t end = seen(a, first + count - 1).end;
  for (int64_t key = seen(a, first).first / kTile * kTile; key < end; key += kTile) {
    const int keys = static_cast<int>(min(int64_t{kTile}, a.keys - key));
    __syncthreads();  // the values before are used up
    load_turned(k + key * a.width_qk, a.width_qk, keys, width, 1.0f, keys_or_values);
    __syncthreads();
    float scores[4][4];
    products(q, keys_or_values, width, x, y, scores);
    hide(a, first, key, x, y, scores);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float kept = row[i].take(scores[i]);
#pragma unroll
      for (int c = 0; c < 4 * kGroups; ++c) carried[i][c] *= kept;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      *reinterpret_cast<float4*>(p + (x + kSide * j) * kWeightRow + 4 * y) =
          float4{scores[0][j], scores[1][j], scores[2][j], scores[3][j]};
    __syncthreads();  // the keys are used up, and all weights are there
    load_values(v + key * a.width_v, keys, static_cast<int>(a.width_v), room, keys_or_values);
    __syncthreads();
#pragma unroll 4
    for (int r = 0; r < kTile; ++r) {
      const float4 w = *reinterpret_cast<const float4*>(p + r * kWeightRow + 4 * y);
      const float weight[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const float4 value = *reinterpret_cast<const float4*>(keys_or_values + r * room + kTile * g + 4 * x);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          carried[i][4 * g] += weight[i] * value.x;
          carried[i][4 * g + 1] += weight[i] * value.y;
          carried[i][4 * g + 2] += weight[i] * value.z;
          carried[i][4 * g + 3] += weight[i] * value.w;
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (4 * y + i >= count) continue;
    const int64_t query = first + 4 * y + i, place = (sample * a.heads + head) * a.queries + query;
    const double top = row[i].top, sum = row[i].sum;
    double share = 1, rest = 0;  // of the keys and of the sink, over the larger of both largest scores
    if (in.sinks != nullptr) {
      const double sink = static_cast<double>(in.sinks[head]) * kLog2E;
      share = sink > top ? exp2(top - sink) : 1.0;
      rest = sink > top ? 1.0 : exp2(sink - top);
    }
    const double total = sum * share + rest;
    const auto factor = static_cast<float>(share / total);
    float* to = out.out + ((sample * a.queries + query) * a.heads + head) * a.width_v;
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      if (kTile * g + 4 * x < a.width_v)
        *reinterpret_cast<float4*>(to + kTile * g + 4 * x) =
            float4{carried[i][4 * g] * factor, carried[i][4 * g + 1] * factor, carried[i][4 * g + 2] * factor,
                   carried[i][4 * g + 3] * factor};
    if (x != 0) continue;
    out.mass[place] = sum * share / total;
    if (out.entropy == nullptr) continue;
    const double h = kLn2 * (log2(sum) - row[i].weighted / sum);
    out.entropy[place] = h < 0 ? 0 : h;  // a NaN stays one
    rows[place] = float2{row[i].top, factor};
  }
}

/// What 64 keys receive from the queries of a segment.
__global__ __launch_bounds__(kThreads, 2) void received_kernel(LongAttention a, LongOperands in,
                                                               double* received, const float2* rows,
                                                               int64_t segments, int64_t segment_rows) {
  extern __shared__ float4 shared[];
  __shared__ double each[kSide][kTile];
  const int width = static_cast<int>(a.width_qk);
  float *q = reinterpret_cast<float*>(shared), *k = q + width * kTile;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const int64_t key = blockIdx.x / segments * kTile, segment = blockIdx.x % segments;
  const int64_t head = blockIdx.y, sample = blockIdx.z;
  const int keys = static_cast<int>(min(int64_t{kTile}, a.keys - key));
  load_turned(in.k + ((sample * a.key_heads + head / (a.heads / a.key_heads)) * a.keys + key) * a.width_qk,
              a.width_qk, keys, width, 1.0f, k);
  const int64_t end = min(a.queries, (segment + 1) * segment_rows);
  double columns[4] = {};
  for (int64_t first = segment * segment_rows; first < end; first += kTile) {
    const int count = static_cast<int>(min(int64_t{kTile}, end - first));
    if (seen(a, first).first >= key + keys || seen(a, first + count - 1).end <= key) continue;
    __syncthreads();  // the queries before are used up
    load_turned(in.q + ((sample * a.queries + first) * a.heads + head) * a.width_qk, a.heads * a.width_qk,
                count, width, static_cast<float>(a.scale * kLog2E), q);
    __syncthreads();
    float scores[4][4];
    products(q, k, width, x, y, scores);
    hide(a, first, key, x, y, scores);
    float part[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (4 * y + i >= count) continue;
      const float2 of = rows[(sample * a.heads + head) * a.queries + first + 4 * y + i];
#pragma unroll
      for (int j = 0; j < 4; ++j) part[j] += exp2f(scores[i][j] - of.x) * of.y;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) columns[j] += part[j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) each[y][4 * x + j] = columns[j];
  __syncthreads();
  const int t = static_cast<int>(threadIdx.x);
  if (t >= keys) return;
  double total = 0;
  for (int i = 0; i < kSide; ++i) total += each[i][t];
  received[((sample * a.heads + head) * segments + segment) * a.keys + key + t] = total;
}

template <class Kernel>
void allow_shared(Kernel kernel, size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "long_attention");
}

template <int kGroups>
void forward(const LongAttention& a, const LongOperands& in, const LongResults& out, float2* rows,
             cudaStream_t stream) {
  const int64_t widest = a.width_qk > kTile * kGroups ? a.width_qk : kTile * kGroups;
  const size_t bytes = sizeof(float) * static_cast<size_t>(kTile * (a.width_qk + kWeightRow + widest));
  allow_shared(forward_kernel<kGroups>, bytes);
  const dim3 blocks(blocks_for(a.queries, kTile, "long_attention"), static_cast<unsigned>(a.heads),
                    static_cast<unsigned>(a.samples));
  forward_kernel<kGroups><<<blocks, kThreads, bytes, stream>>>(a, in, out, rows);
  check_launch("long_attention");
}

bool fits(int64_t width) { return width > 0 && width <= kWidest && width % 4 == 0; }

}  // namespace

bool long_attention_takes(const LongAttention& a) {
  constexpr int64_t kMostBlocks = 65535;  // in the second and third direction of a grid
  return fits(a.width_qk) && fits(a.width_v) && a.heads <= kMostBlocks && a.samples <= kMostBlocks;
}

void long_attention(const LongAttention& a, const LongOperands& in, const LongResults& out, float* rows,
                    void* stream) {
  if (a.samples == 0 || a.heads == 0 || a.queries == 0 || a.keys == 0) return;
  auto* each_row = reinterpret_cast<float2*>(rows);
  a.width_v <= kTile ? forward<1>(a, in, out, each_row, as_stream(stream))
                     : forward<2>(a, in, out, each_row, as_stream(stream));
  if (out.received == nullptr) return;
  const int64_t segments = long_segments(a);
  const size_t bytes = sizeof(float) * static_cast<size_t>(2 * kTile * a.width_qk);
  allow_shared(received_kernel, bytes);
  const dim3 blocks(blocks_for((a.keys + kTile - 1) / kTile * segments, 1, "long_attention"),
                    static_cast<unsigned>(a.heads), static_cast<unsigned>(a.samples));
  received_kernel<<<blocks, kThreads, bytes, as_stream(stream)>>>(a, in, out.received, each_row, segments,
                                                                  long_segment_rows(a));
  check_launch("long_attention");
}

}  // namespace rankscope::cuda
