// Both kernels chain products in registers: the accumulator of one is the first factor of the next. A thread
// has columns 2t and 2t + 1 of an accumulator's eight but gives columns t and t + 4 of a factor, so the rows
// of what makes the accumulator are put into shared memory in another order: place 2t takes row t of eight,
// place 2t + 1 row t + 4, and the next product finds its contraction in order.
#include "kernels/cuda/mlp.h"

#include <algorithm>

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/tiles.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWidth = static_cast<int>(kMlpWidth);
constexpr int kGroup = 128;  // threads of a warpgroup
constexpr int kGroupRows = 64;

// Which warpgroup this is; said so that the compiler knows it is the same for a whole warp, and keeps what
// depends on it in the registers that a warp shares, where the tensor cores want it.
__device__ __forceinline__ int group_index() {
  return __shfl_sync(kEveryLane, static_cast<int>(threadIdx.x) / kGroup, 0);
}

__device__ __forceinline__ int row_at(int place) { return place / 8 * 8 + place % 8 / 2 + place % 2 * 4; }

// Brings a matrix of kRows rows by kColumns columns to shared memory; row_of(i) says which row stands i-th. A
// pass of all threads takes whole groups of eight rows, so that every pass is the first one some way on.
template <int kThreads, int kRows, int kColumns, class RowOf>
__device__ __forceinline__ void fetch(float* to, const float* from, int64_t stride, RowOf row_of) {
  constexpr int kPieces = kColumns / 4, kPassRows = kThreads / kPieces;
  static_assert(kPassRows % 8 == 0 && kRows % kPassRows == 0);
  const int row = threadIdx.x / kPieces, column = threadIdx.x % kPieces * 4;
  to += swizzled(row, column, kRows);
  from += row_of(row) * stride + column;
#pragma unroll
  for (int pass = 0; pass < kRows / kPassRows; ++pass)
    copy_async(to + pass * kPassRows * kBlockColumns, from + pass * kPassRows * stride);
}

struct Ordered {
  __device__ __forceinline__ int operator()(int row) const { return row; }
};
struct Paired {
  __device__ __forceinline__ int operator()(int row) const { return row_at(row); }
};

// ---- tokens in rows: forward, and the gradient of x ----------------------------------------------------

constexpr int kTokenGroups = 2, kTokenThreads = kTokenGroups * kGroup;
constexpr int kBlockTokens = kTokenGroups * kGroupRows;
constexpr int kChunk = 64;  // hidden units at a time: a word of signs a thread

struct Stage {
  float first[kChunk * kWidth];   // [hidden, 64], rows paired
  float second[kWidth * kChunk];  // [64, hidden]
};

struct Tokens {
  int64_t rows, hidden;
  const float *x, *first, *bias, *second, *out_bias;
  float* y;
  uint32_t* signs;
};

struct TokenShared {
  float x[kTokenGroups][kGroupRows * kWidth];
  Stage stages[2];
  float bias[2][kChunk];
};
constexpr int kTokenBytes = sizeof(TokenShared) + 1024;  // and room to align it

__device__ __forceinline__ unsigned char* aligned_shared() {
  extern __shared__ unsigned char shared[];
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  return shared + (1024 - address % 1024) % 1024;
}

// kForward: y = relu(x first^T + bias) second^T + out_bias, and the signs are written. Otherwise y =
// (x first^T where the sign was positive) second^T.
template <bool kForward>
__global__ __launch_bounds__(kTokenThreads, 2) void tokens_kernel(const __grid_constant__ Tokens k) {
  TokenShared& shared = *reinterpret_cast<TokenShared*>(aligned_shared());
  const Lane lane;
  const int trial = blockIdx.y, chunks = static_cast<int>(k.hidden / kChunk);
  const int64_t row = int64_t{blockIdx.x} * kBlockTokens + threadIdx.x / kWarp * 16 + lane.g;
  const float* first = k.first + trial * k.hidden * kWidth;
  const float* second = k.second + trial * k.hidden * kWidth;
  const float* bias = k.bias == nullptr ? nullptr : k.bias + trial * k.hidden;
  uint32_t* signs =
      k.signs + (int64_t{trial} * gridDim.x + blockIdx.x) * chunks * kTokenThreads + threadIdx.x;

  const auto start = [&](int chunk) {
    Stage& s = shared.stages[chunk % 2];
    fetch<kTokenThreads, kChunk, kWidth>(s.first, first + int64_t{chunk} * kChunk * kWidth, kWidth, Paired{});
    fetch<kTokenThreads, kWidth, kChunk>(s.second, second + chunk * kChunk, k.hidden, Ordered{});
    if (bias != nullptr && threadIdx.x < kChunk / 4)
      copy_async(&shared.bias[chunk % 2][4 * threadIdx.x], bias + chunk * kChunk + 4 * threadIdx.x);
    copy_commit();
  };
  start(0);

  for (int i = threadIdx.x; i < kBlockTokens * kWidth; i += kTokenThreads) {
    const int token = i / kWidth, column = i % kWidth;
    const int64_t at = int64_t{blockIdx.x} * kBlockTokens + token;
    const float value = at < k.rows ? k.x[(trial * k.rows + at) * kWidth + column] : 0.0f;
    shared.x[token / kGroupRows][swizzled(token % kGroupRows, column, kGroupRows)] = tf32_round(value);
  }
  float y[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    y[i] = kForward && k.out_bias != nullptr ? k.out_bias[trial * kWidth + i / 4 * 8 + 2 * lane.t + i % 2]
                                             : 0.0f;

  const Matrix x(shared.x[group_index()]);
  uint32_t next_word = kForward ? 0 : signs[0];
  for (int chunk = 0; chunk < chunks; ++chunk) {
    float h[32] = {};
    uint32_t word = kForward ? 0 : next_word;
    if (!kForward && chunk + 1 < chunks) next_word = signs[int64_t{chunk + 1} * kTokenThreads];
    copy_wait<0>();
    show_to_tensor_cores();
    __syncthreads();  // this chunk is there, and everybody is done with the one before
    const Stage& s = shared.stages[chunk % 2];
    const Matrix in(s.first), out(s.second);

    products(
        [&] {
#pragma unroll
          for (int c = 0; c < kWidth / 8; ++c) product_64(h, x.at(c, kGroupRows), in.at(c, kChunk));
        },
        [&] {
          if (chunk + 1 < chunks) start(chunk + 1);
        },
        h);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (kForward) {
        if (bias != nullptr) h[i] += shared.bias[chunk % 2][i / 4 * 8 + lane.t + i % 2 * 4];
        const bool off = h[i] <= 0.0f;  // a NaN goes on
        word |= off ? 0u : 1u << i;
        h[i] = off ? 0.0f : tf32_factor_not_negative(h[i]);
      } else {
        h[i] = (word & 1u << i) == 0 ? 0.0f : tf32_factor(h[i]);
      }
    }
    if (kForward) signs[int64_t{chunk} * kTokenThreads] = word;
    products(
        [&] {
#pragma unroll
          for (int c = 0; c < kChunk / 8; ++c)
            product_64(y, h[4 * c], h[4 * c + 2], h[4 * c + 1], h[4 * c + 3], out.at(c, kWidth));
        },
        Nothing{}, y, h);
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= k.rows) continue;
    float* to = k.y + (trial * k.rows + row + 8 * r) * kWidth + 2 * lane.t;
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j)
      *reinterpret_cast<float2*>(to + 8 * j) = {y[4 * j + 2 * r], y[4 * j + 2 * r + 1]};
  }
}

template <bool kForward>
void launch_tokens(const Mlp& m, const Tokens& k, void* stream, const char* name) {
  check(
      cudaFuncSetAttribute(tokens_kernel<kForward>, cudaFuncAttributeMaxDynamicSharedMemorySize, kTokenBytes),
      name);
  const dim3 grid(blocks_for(m.rows, kBlockTokens, name), static_cast<unsigned>(m.trials));
  tokens_kernel<kForward><<<grid, kTokenThreads, kTokenBytes, as_stream(stream)>>>(k);
  check_launch(name);
}

// ---- hidden units in rows: the gradients of the weights -------------------------------------------------

constexpr int kUnitGroups = 4, kUnitThreads = kUnitGroups * kGroup;
constexpr int kPiece = static_cast<int>(kMlpRowStep);  // tokens at a time
static_assert(kUnitGroups * kGroupRows == kMlpHiddenStep);

struct Piece {
  float x[kPiece * kWidth], dy[kPiece * kWidth];      // [tokens, 64], rows paired
  float x_t[kWidth * kPiece], dy_t[kWidth * kPiece];  // [64, tokens]
};
struct UnitWeights {
  float first[kGroupRows * kWidth], second[kGroupRows * kWidth];  // of a warpgroup's 64 units
};
struct UnitShared {
  UnitWeights weights[kUnitGroups];
  Piece pieces[2];
  float bias[kMlpHiddenStep];
};
constexpr int kUnitBytes = sizeof(UnitShared) + 1024;

struct Units {
  int64_t hidden, rows, rows_each;  // padded rows, and those of a split
  MlpTokens x, dy;
  const float *W_in, *b_in, *W_out_t;
  float *dW_in, *dW_out, *db_in;
};

__global__ __launch_bounds__(kUnitThreads, 1) void units_kernel(const __grid_constant__ Units k) {
  UnitShared& shared = *reinterpret_cast<UnitShared*>(aligned_shared());
  const Lane lane;
  const int trial = blockIdx.y, group = group_index();
  const int block_unit = blockIdx.x * static_cast<int>(kMlpHiddenStep);
  const int unit = block_unit + threadIdx.x / kWarp * 16 + lane.g;
  const int begin = blockIdx.z * static_cast<int>(k.rows_each);
  const int count = min(static_cast<int>(k.rows_each), static_cast<int>(k.rows) - begin) / kPiece;

  const auto start = [&](int number) {
    Piece& p = shared.pieces[number % 2];
    const int row = begin + number * kPiece;
    const int64_t tokens = trial * k.rows * kWidth;
    fetch<kUnitThreads, kPiece, kWidth>(p.x, k.x.rounded + tokens + int64_t{row} * kWidth, kWidth, Paired{});
    fetch<kUnitThreads, kPiece, kWidth>(p.dy, k.dy.rounded + tokens + int64_t{row} * kWidth, kWidth,
                                        Paired{});
    fetch<kUnitThreads, kWidth, kPiece>(p.x_t, k.x.turned + tokens + row, k.rows, Ordered{});
    fetch<kUnitThreads, kWidth, kPiece>(p.dy_t, k.dy.turned + tokens + row, k.rows, Ordered{});
    copy_commit();
  };
  for (int g = 0; g < kUnitGroups; ++g) {
    const int64_t from = (trial * k.hidden + block_unit + g * kGroupRows) * kWidth;
    fetch<kUnitThreads, kGroupRows, kWidth>(shared.weights[g].first, k.W_in + from, kWidth, Ordered{});
    fetch<kUnitThreads, kGroupRows, kWidth>(shared.weights[g].second, k.W_out_t + from, kWidth, Ordered{});
  }
  if (k.b_in != nullptr && threadIdx.x < kMlpHiddenStep)
    shared.bias[threadIdx.x] = k.b_in[trial * k.hidden + block_unit + threadIdx.x];
  if (count > 0) start(0);

  float db[2] = {}, dW_in[32] = {}, dW_out[32] = {};
  const Matrix first(shared.weights[group].first), second(shared.weights[group].second);
#pragma unroll 1
  for (int number = 0; number < count; ++number) {
    copy_wait<0>();
    show_to_tensor_cores();
    __syncthreads();
    const Piece& p = shared.pieces[number % 2];
    const Matrix x(p.x), dy(p.dy), x_t(p.x_t), dy_t(p.dy_t);
    // One part of the hidden layer at a time: registers do not reach for both at once.
    float h[16], dh[16] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i)
      h[i] = k.b_in == nullptr ? 0.0f : shared.bias[threadIdx.x / kWarp * 16 + lane.g + i / 2 % 2 * 8];
    products(
        [&] {
#pragma unroll
          for (int c = 0; c < kWidth / 8; ++c) product_32(h, first.at(c, kGroupRows), x.at(c, kPiece));
        },
        [&] {
          if (number + 1 < count) start(number + 1);
        },
        h);
    uint32_t on = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const bool off = h[i] <= 0.0f;
      on |= off ? 0u : 1u << i;
      h[i] = off ? 0.0f : tf32_factor_not_negative(h[i]);
    }
    products(
        [&] {
#pragma unroll
          for (int c = 0; c < kWidth / 8; ++c) product_32(dh, second.at(c, kGroupRows), dy.at(c, kPiece));
#pragma unroll
          for (int c = 0; c < kPiece / 8; ++c)
            product_64(dW_out, h[4 * c], h[4 * c + 2], h[4 * c + 1], h[4 * c + 3], dy_t.at(c, kWidth));
        },
        Nothing{}, dh, dW_out, h);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      dh[i] = (on & 1u << i) == 0 ? 0.0f : dh[i];
      db[i / 2 % 2] += dh[i];
      dh[i] = tf32_factor(dh[i]);
    }
    products(
        [&] {
#pragma unroll
          for (int c = 0; c < kPiece / 8; ++c)
            product_64(dW_in, dh[4 * c], dh[4 * c + 2], dh[4 * c + 1], dh[4 * c + 3], x_t.at(c, kWidth));
        },
        Nothing{}, dW_in, dh);
  }

  const int64_t part = int64_t{blockIdx.z} * gridDim.y + trial;
  float* in = k.dW_in + (part * k.hidden + unit) * kWidth;
  float* out = k.dW_out + part * k.hidden * kWidth + unit;
#pragma unroll
  for (int j = 0; j < kWidth / 8; ++j)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int column = 8 * j + 2 * lane.t;
      *reinterpret_cast<float2*>(in + 8 * r * kWidth + column) = {dW_in[4 * j + 2 * r],
                                                                  dW_in[4 * j + 2 * r + 1]};
#pragma unroll
      for (int e = 0; e < 2; ++e) out[(column + e) * k.hidden + 8 * r] = dW_out[4 * j + 2 * r + e];
    }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    db[r] += __shfl_xor_sync(kEveryLane, db[r], 1);
    db[r] += __shfl_xor_sync(kEveryLane, db[r], 2);
    if (lane.t == 0) k.db_in[part * k.hidden + unit + 8 * r] = db[r];
  }
}

// ---- factors as the kernels want them -------------------------------------------------------------------

constexpr int kSquare = 32, kSquareRows = 8;

__global__ void prepare_kernel(int64_t rows, int64_t padded, int64_t columns, const float* x, int64_t trial,
                               float* rounded, float* turned) {
  __shared__ float square[kSquare][kSquare + 1];
  const int t = blockIdx.z;
  const int64_t row = int64_t{blockIdx.y} * kSquare, column = int64_t{blockIdx.x} * kSquare;
  for (int i = threadIdx.y; i < kSquare; i += kSquareRows) {
    const int64_t r = row + i, c = column + threadIdx.x;
    const float value = r < rows ? tf32_round(x[t * trial + r * columns + c]) : 0.0f;
    if (rounded != nullptr) rounded[(t * padded + r) * columns + c] = value;
    square[i][threadIdx.x] = value;
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kSquare; i += kSquareRows)
    turned[(t * columns + column + i) * padded + row + threadIdx.x] = square[threadIdx.x][i];
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

void mlp_prepare(int64_t trials, int64_t rows, int64_t padded, int64_t columns, const float* x, int64_t trial,
                 float* rounded, float* turned, void* stream) {
  if (trials == 0 || padded == 0) return;
  const dim3 grid(blocks_for(columns, kSquare, "mlp_prepare"), blocks_for(padded, kSquare, "mlp_prepare"),
                  static_cast<unsigned>(trials));
  prepare_kernel<<<grid, dim3(kSquare, kSquareRows), 0, as_stream(stream)>>>(rows, padded, columns, x, trial,
                                                                             rounded, turned);
  check_launch("mlp_prepare");
}

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

// A multiprocessor has one block at a time: the number of parts that leaves the fewest of them idle at the
// end, a part more worth its sums if it saves one in thirty.
int64_t mlp_splits(const Mlp& m) {
  const int64_t blocks = std::max<int64_t>(1, m.trials * (m.hidden / kMlpHiddenStep)),
                all = multiprocessors();
  const int64_t most = std::clamp<int64_t>(m.padded_rows() / (8 * kPiece), 1, 16);
  int64_t best = 1;
  double least = 0;
  for (int64_t splits = 1; splits <= most; ++splits) {
    const double rounds = static_cast<double>((blocks * splits + all - 1) / all);
    const double time = rounds / static_cast<double>(splits) * (1 + static_cast<double>(splits) / 30);
    if (splits == 1 || time < least) {
      least = time;
      best = splits;
    }
  }
  return best;
}

void mlp_backward_weights(const Mlp& m, MlpTokens x, MlpTokens dy, const float* W_in, const float* b_in,
                          const float* W_out_t, float* dW_in, float* dW_out, float* db_in, void* stream) {
  if (m.trials == 0) return;
  check(cudaFuncSetAttribute(units_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kUnitBytes),
        "mlp_backward_weights");
  const int64_t splits = mlp_splits(m), pieces = m.padded_rows() / kPiece;
  const int64_t rows_each = (pieces + splits - 1) / splits * kPiece;
  const dim3 grid(static_cast<unsigned>(m.hidden / kMlpHiddenStep), static_cast<unsigned>(m.trials),
                  static_cast<unsigned>(splits));
  units_kernel<<<grid, kUnitThreads, kUnitBytes, as_stream(stream)>>>(
      {m.hidden, m.padded_rows(), rows_each, x, dy, W_in, b_in, W_out_t, dW_in, dW_out, db_in});
  check_launch("mlp_backward_weights");
}

}  // namespace rankscope::cuda
