// Hidden units in rows: the gradients of the weights.
#include <algorithm>

#include "kernels/cuda/mlp.cuh"

namespace rankscope::cuda {
namespace {

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
