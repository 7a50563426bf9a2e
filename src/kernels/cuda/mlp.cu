// Both kernels chain products in registers: the accumulator of one product is the first factor of the next.
// A tensor core gives lane (g, t) the columns 2t and 2t + 1 of an accumulator but wants columns t and t + 4
// of a factor; which number stands at which place of a contraction is free as long as both factors agree, so
// the places are chosen such that nothing moves between lanes and every read of shared memory is 16 bytes
// wide and free of bank conflicts.
#include "kernels/cuda/mlp.h"

#include <algorithm>

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/tiles.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWidth = static_cast<int>(kMlpWidth);

// A float4 is this lane's share of 16 columns of a factor, two steps of a contraction: x and y (columns 4t
// and 4t + 1) are places t and t + 4 of the first, z and w of the second.
struct Quad {
  uint32_t x[4];
};
__device__ __forceinline__ Quad rounded(float4 v) {
  return {tf32_bits(v.x), tf32_bits(v.y), tf32_bits(v.z), tf32_bits(v.w)};
}
__device__ __forceinline__ Quad quad(const float* from) {
  return rounded(*reinterpret_cast<const float4*>(from));
}

// 16 rows (g and g + 8 of them here) of 64 columns, as a first factor.
struct RowFactor {
  Quad row[2][kWidth / 16];
  __device__ __forceinline__ void load(const float* from, int64_t stride, int rows, Lane lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = lane.g + 8 * r;
#pragma unroll
      for (int s = 0; s < kWidth / 16; ++s)
        row[r][s] = i < rows ? quad(from + i * stride + 16 * s + 4 * lane.t) : Quad{};
    }
  }
  // sum += the columns 16s to 16s + 15 times those of b.
  __device__ __forceinline__ void multiply(int s, const Quad& b, float (&sum)[4]) const {
    const Quad &p = row[0][s], &q = row[1][s];
    mma_tf32(sum, p.x[0], q.x[0], p.x[1], q.x[1], b.x[0], b.x[1]);
    mma_tf32(sum, p.x[2], q.x[2], p.x[3], q.x[3], b.x[2], b.x[3]);
  }
};

// ---- tokens in rows: forward, and the gradient of x ----------------------------------------------------

constexpr int kTokenWarps = 4, kTokenThreads = kTokenWarps * kWarp;
constexpr int kBands = 2;  // of 16 tokens, a warp
constexpr int kBlockTokens = kTokenWarps * kBands * 16;
constexpr int kChunk = 32;  // hidden units in shared memory at a time
// Two rows that a quarter warp reads together lie 16 banks apart.
constexpr int kFirstStride = kWidth + 16, kSecondStride = kChunk + 16;

struct Stage {
  float first[kChunk * kFirstStride];    // [hidden, 64]
  float second[kWidth * kSecondStride];  // [64, hidden]
  float bias[kChunk];
};

struct Tokens {
  int64_t rows, hidden;
  const float *x, *first, *bias, *second, *out_bias;
  float* y;
  uint32_t* signs;
};

// kForward: y = relu(x first^T + bias) second^T + out_bias, and the signs are written. Otherwise y =
// (x first^T where the sign was positive) second^T.
template <bool kForward>
__global__ __launch_bounds__(kTokenThreads, 2) void tokens_kernel(const __grid_constant__ Tokens k) {
  extern __shared__ float4 shared[];
  Stage* stages = reinterpret_cast<Stage*>(shared);
  const Lane lane;
  const int t = blockIdx.y, warp = threadIdx.x / kWarp;
  const int64_t row = int64_t{blockIdx.x} * kBlockTokens + warp * kBands * 16;
  const float* first = k.first + t * k.hidden * kWidth;
  const float* second = k.second + t * k.hidden * kWidth;
  const float* bias = k.bias == nullptr ? nullptr : k.bias + t * k.hidden;
  const int chunks = static_cast<int>(k.hidden / kChunk);
  uint32_t* signs =
      k.signs == nullptr
          ? nullptr
          : k.signs + (int64_t{t} * gridDim.x + blockIdx.x) * chunks * kTokenThreads + threadIdx.x;

  const auto fetch = [&](int chunk) {
    Stage& s = stages[chunk % 2];
    for (int i = threadIdx.x; i < kChunk * kWidth / 4; i += kTokenThreads)
      copy_async(&s.first[i / (kWidth / 4) * kFirstStride + i % (kWidth / 4) * 4],
                 first + int64_t{chunk} * kChunk * kWidth + 4 * i);
    for (int i = threadIdx.x; i < kChunk * kWidth / 4; i += kTokenThreads)
      copy_async(&s.second[i / (kChunk / 4) * kSecondStride + i % (kChunk / 4) * 4],
                 second + i / (kChunk / 4) * k.hidden + chunk * kChunk + i % (kChunk / 4) * 4);
    if (kForward && bias != nullptr && threadIdx.x < kChunk / 4)
      copy_async(&s.bias[4 * threadIdx.x], bias + chunk * kChunk + 4 * threadIdx.x);
    copy_commit();
  };

  RowFactor x[kBands];
#pragma unroll
  for (int b = 0; b < kBands; ++b) {
    const int64_t from = row + 16 * b;
    const int left = static_cast<int>(max(min(k.rows - from, int64_t{16}), int64_t{0}));
    x[b].load(k.x + (t * k.rows + from) * kWidth, kWidth, left, lane);
  }
  float y[kBands][kWidth / 8][4];
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n) {
    float2 start{0.0f, 0.0f};
    if (kForward && k.out_bias != nullptr)
      start = *reinterpret_cast<const float2*>(k.out_bias + t * kWidth + 8 * n + 2 * lane.t);
#pragma unroll
    for (int b = 0; b < kBands; ++b)
#pragma unroll
      for (int i = 0; i < 4; ++i) y[b][n][i] = i % 2 == 0 ? start.x : start.y;
  }

  fetch(0);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    uint32_t word = 0;
    if (!kForward) word = signs[int64_t{chunk} * kTokenThreads];
    if (chunk + 1 < chunks) {
      fetch(chunk + 1);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();
    const Stage& s = stages[chunk % 2];
#pragma unroll
    for (int group = 0; group < kChunk / 16; ++group) {
      // 16 hidden units in two accumulators: this lane has units 4t and 4t + 1 in the first, 4t + 2 and 4t +
      // 3 in the second.
      float h[kBands][2][4];
      float4 start{0.0f, 0.0f, 0.0f, 0.0f};
      if (kForward && bias != nullptr)
        start = *reinterpret_cast<const float4*>(&s.bias[16 * group + 4 * lane.t]);
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          h[b][0][i] = i % 2 == 0 ? start.x : start.y;
          h[b][1][i] = i % 2 == 0 ? start.z : start.w;
        }
#pragma unroll
      for (int c = 0; c < kWidth / 16; ++c)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int unit = 16 * group + lane.g / 2 * 4 + 2 * e + lane.g % 2;
          const Quad w = quad(&s.first[unit * kFirstStride + 16 * c + 4 * lane.t]);
#pragma unroll
          for (int b = 0; b < kBands; ++b) x[b].multiply(c, w, h[b][e]);
        }
      uint32_t a[kBands][2][4];  // rows g and g + 8 of each place in turn
#pragma unroll
      for (int b = 0; b < kBands; ++b)
#pragma unroll
        for (int e = 0; e < 2; ++e)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int bit = ((group * kBands + b) * 2 + e) * 4 + i;
            if (kForward) {
              const bool off = h[b][e][i] <= 0.0f;  // a NaN goes on
              if (off) h[b][e][i] = 0.0f;
              word |= static_cast<uint32_t>(!off) << bit;
            } else if ((word >> bit & 1u) == 0) {
              h[b][e][i] = 0.0f;
            }
            // Accumulator (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) to factor (g, t), (g + 8, t),
            // ...
            a[b][e][i % 2 * 2 + i / 2] = tf32_bits(h[b][e][i]);
          }
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) {
        const Quad w = quad(&s.second[(8 * n + lane.g) * kSecondStride + 16 * group + 4 * lane.t]);
#pragma unroll
        for (int b = 0; b < kBands; ++b)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            mma_tf32(y[b][n], a[b][e][0], a[b][e][1], a[b][e][2], a[b][e][3], w.x[2 * e], w.x[2 * e + 1]);
      }
    }
    if (kForward && signs != nullptr) signs[int64_t{chunk} * kTokenThreads] = word;
    __syncthreads();
  }

#pragma unroll
  for (int b = 0; b < kBands; ++b)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int64_t at = row + 16 * b + lane.g + 8 * r;
      if (at >= k.rows) continue;
      float* to = k.y + (t * k.rows + at) * kWidth + 2 * lane.t;
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n)
        *reinterpret_cast<float2*>(to + 8 * n) = {y[b][n][2 * r], y[b][n][2 * r + 1]};
    }
}

template <bool kForward>
void launch_tokens(const Mlp& m, const Tokens& k, void* stream, const char* name) {
  constexpr int kBytes = 2 * sizeof(Stage);
  static_assert(kBytes <= 48 * 1024);
  const dim3 grid(blocks_for(m.rows, kBlockTokens, name), static_cast<unsigned>(m.trials));
  tokens_kernel<kForward><<<grid, kTokenThreads, kBytes, as_stream(stream)>>>(k);
  check_launch(name);
}

// ---- hidden units in rows: the gradients of the weights -------------------------------------------------

constexpr int kUnitWarps = 8, kUnitThreads = kUnitWarps * kWarp;  // a warp has 16 hidden units
constexpr int kPiece = 32;                                        // tokens in shared memory at a time
constexpr int kTokenStride = kWidth + 8;
static_assert(kUnitWarps * 16 == kMlpHiddenStep);

struct Piece {
  float x[kPiece * kTokenStride], dy[kPiece * kTokenStride];
};

struct Units {
  int64_t rows, hidden, rows_each;  // rows_each: of a split, a multiple of kPiece
  const float *x, *dy, *W_in, *b_in, *W_out_t;
  float *dW_in, *dW_out_t, *db_in;
};

// Which of 8 tokens stands at place p of an accumulator's columns. Places 2t are tokens t: a warp that reads
// columns of them meets every bank once; places 2i and 2i + 1 are rows 16 banks apart.
__device__ __forceinline__ int token_at(int p) { return p % 2 == 0 ? p / 2 : 4 + (p / 2 + 2) % 4; }

// 16 units' accumulated gradient: sums of 8 columns, columns 32q + 4p + e at place p of accumulator (q, e).
struct WeightSum {
  float x[2][4][4] = {};
  // sum += a (units x 8 tokens) times the tokens' rows; `low` and `high` are this lane's two tokens.
  __device__ __forceinline__ void add(const uint32_t (&a)[4], const float* low, const float* high,
                                      Lane lane) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const Quad b0 = quad(low + 32 * q + 4 * lane.g), b1 = quad(high + 32 * q + 4 * lane.g);
#pragma unroll
      for (int e = 0; e < 4; ++e) mma_tf32(x[q][e], a[0], a[1], a[2], a[3], b0.x[e], b1.x[e]);
    }
  }
  __device__ __forceinline__ void store(float* to, Lane lane) const {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int c = 0; c < 2; ++c)
          *reinterpret_cast<float4*>(to + (lane.g + 8 * r) * kWidth + 32 * q + 8 * lane.t + 4 * c) = {
              x[q][0][2 * r + c], x[q][1][2 * r + c], x[q][2][2 * r + c], x[q][3][2 * r + c]};
  }
};

__global__ __launch_bounds__(kUnitThreads, 1) void units_kernel(const __grid_constant__ Units k) {
  extern __shared__ float4 shared[];
  Piece* pieces = reinterpret_cast<Piece*>(shared);
  const Lane lane;
  const int t = blockIdx.y, warp = threadIdx.x / kWarp;
  const int64_t unit = int64_t{blockIdx.x} * kMlpHiddenStep + warp * 16;
  const int64_t begin = blockIdx.z * k.rows_each, end = min(begin + k.rows_each, k.rows);
  const float* x = k.x + t * k.rows * kWidth;
  const float* dy = k.dy + t * k.rows * kWidth;

  const auto fetch = [&](int number) {
    Piece& p = pieces[number % 2];
    const int64_t from = begin + int64_t{number} * kPiece;
    for (int i = threadIdx.x; i < kPiece * kWidth / 4; i += kUnitThreads) {
      const int token = i / (kWidth / 4), column = i % (kWidth / 4) * 4;
      const int64_t at = from + token;
      float* to = &p.x[token * kTokenStride + column];
      float* to_dy = &p.dy[token * kTokenStride + column];
      if (at < end) {
        copy_async(to, x + at * kWidth + column);
        copy_async(to_dy, dy + at * kWidth + column);
      } else {  // a token with no slope counts for nothing
        *reinterpret_cast<float4*>(to) = *reinterpret_cast<float4*>(to_dy) = {0.0f, 0.0f, 0.0f, 0.0f};
      }
    }
    copy_commit();
  };

  RowFactor first, second;
  first.load(k.W_in + (t * k.hidden + unit) * kWidth, kWidth, 16, lane);
  second.load(k.W_out_t + (t * k.hidden + unit) * kWidth, kWidth, 16, lane);
  float bias[2] = {};
  if (k.b_in != nullptr) {
    bias[0] = k.b_in[t * k.hidden + unit + lane.g];
    bias[1] = k.b_in[t * k.hidden + unit + lane.g + 8];
  }
  WeightSum dW_in, dW_out;
  float db[2] = {};

  const int count = static_cast<int>((end - begin + kPiece - 1) / kPiece);
  if (count > 0) fetch(0);
  for (int number = 0; number < count; ++number) {
    if (number + 1 < count) {
      fetch(number + 1);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();
    const Piece& p = pieces[number % 2];
#pragma unroll 2
    for (int eight = 0; eight < kPiece; eight += 8) {
      float h[4] = {bias[0], bias[0], bias[1], bias[1]}, dh[4] = {};
      const int mine = (eight + token_at(lane.g)) * kTokenStride + 4 * lane.t;
#pragma unroll
      for (int s = 0; s < kWidth / 16; ++s) {
        first.multiply(s, quad(&p.x[mine + 16 * s]), h);
        second.multiply(s, quad(&p.dy[mine + 16 * s]), dh);
      }
      uint32_t a[4], da[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool off = h[i] <= 0.0f;
        db[i / 2] += off ? 0.0f : dh[i];
        a[i % 2 * 2 + i / 2] = off ? 0u : tf32_bits(h[i]);
        da[i % 2 * 2 + i / 2] = off ? 0u : tf32_bits(dh[i]);
      }
      const int low = (eight + token_at(2 * lane.t)) * kTokenStride;
      const int high = (eight + token_at(2 * lane.t + 1)) * kTokenStride;
      dW_in.add(da, &p.x[low], &p.x[high], lane);
      dW_out.add(a, &p.dy[low], &p.dy[high], lane);
    }
    __syncthreads();
  }

  const int64_t part = (int64_t{blockIdx.z} * gridDim.y + t) * k.hidden + unit;
  dW_in.store(k.dW_in + part * kWidth, lane);
  dW_out.store(k.dW_out_t + part * kWidth, lane);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    db[r] += __shfl_xor_sync(kEveryLane, db[r], 1);
    db[r] += __shfl_xor_sync(kEveryLane, db[r], 2);
    if (lane.t == 0) k.db_in[part + lane.g + 8 * r] = db[r];
  }
}

int64_t multiprocessors() {
  static const int count = [] {
    int device = 0, number = 0;
    check(cudaGetDevice(&device), "mlp");
    check(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device), "mlp");
    return number;
  }();
  return count;
}

}  // namespace

int64_t mlp_sign_words(const Mlp& m) {
  const int64_t blocks = (m.rows + kBlockTokens - 1) / kBlockTokens;
  return m.trials * blocks * (m.hidden / kChunk) * kTokenThreads;
}

void mlp_forward(const Mlp& m, const float* x, const float* W_in, const float* b_in, const float* W_out,
                 const float* b_out, float* y, uint32_t* signs, void* stream) {
  if (m.trials == 0 || m.rows == 0) return;
  launch_tokens<true>(m, {m.rows, m.hidden, x, W_in, b_in, W_out, b_out, y, signs}, stream, "mlp_forward");
}

void mlp_backward_tokens(const Mlp& m, const float* dy, const float* W_out_t, const float* W_in_t,
                         const uint32_t* signs, float* dx, void* stream) {
  if (m.trials == 0 || m.rows == 0) return;
  launch_tokens<false>(
      m, {m.rows, m.hidden, dy, W_out_t, nullptr, W_in_t, nullptr, dx, const_cast<uint32_t*>(signs)}, stream,
      "mlp_backward_tokens");
}

// At least four blocks a multiprocessor, so that the last ones leave little idle.
int64_t mlp_splits(const Mlp& m) {
  const int64_t blocks = std::max<int64_t>(1, m.trials * (m.hidden / kMlpHiddenStep));
  const int64_t most = std::max<int64_t>(1, m.rows / (4 * kPiece));
  return std::clamp<int64_t>(4 * multiprocessors() / blocks, 1, most);
}

void mlp_backward_weights(const Mlp& m, const float* x, const float* dy, const float* W_in, const float* b_in,
                          const float* W_out_t, float* dW_in, float* dW_out_t, float* db_in, void* stream) {
  if (m.trials == 0) return;
  const int64_t splits = mlp_splits(m), pieces = (m.rows + kPiece - 1) / kPiece;
  const int64_t rows_each = (pieces + splits - 1) / splits * kPiece;
  const dim3 grid(static_cast<unsigned>(m.hidden / kMlpHiddenStep), static_cast<unsigned>(m.trials),
                  static_cast<unsigned>(splits));
  constexpr int kBytes = 2 * sizeof(Piece);
  static_assert(kBytes <= 48 * 1024);
  units_kernel<<<grid, kUnitThreads, kBytes, as_stream(stream)>>>(
      {m.rows, m.hidden, rows_each, x, dy, W_in, b_in, W_out_t, dW_in, dW_out_t, db_in});
  check_launch("mlp_backward_weights");
}

}  // namespace rankscope::cuda
