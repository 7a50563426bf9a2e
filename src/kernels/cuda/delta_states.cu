// A block carries 16 columns of a state along the chunks, in fragments of the tensor cores (mma.cuh). What it
// reads of the chunks ahead is on its way to shared memory meanwhile.
#include "kernels/cuda/delta_states.h"

#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/running_attention.h"

namespace rankscope::cuda {
namespace {

constexpr int kTokens = static_cast<int>(kRunningChunk), kColumns = 16, kStages = 3;
constexpr int kThreads = 256;             // 4 warps for the rows, times 2 for the columns
constexpr int kColumnRow = kColumns + 8;  // from row to row of S and U: fragments without conflicts

extern __shared__ __align__(16) float states_shared[];

// Two neighbours of a row in global memory, of which `count` are there; kWhole: always both, at 8 bytes.
template <bool kWhole>
struct Pair {
  int count;
  __device__ __forceinline__ float2 read(const float* at, bool really) const {
    if (!really) return {0, 0};
    if constexpr (kWhole) return *reinterpret_cast<const float2*>(at);
    return {count > 0 ? at[0] : 0.0f, count > 1 ? at[1] : 0.0f};
  }
  __device__ __forceinline__ void write(float* at, bool really, float2 x) const {
    if (!really) return;
    if constexpr (kWhole) {
      *reinterpret_cast<float2*>(at) = x;
      return;
    }
    if (count > 0) at[0] = x.x;
    if (count > 1) at[1] = x.y;
  }
};

// 16 x 8 numbers: a (rows of 16, or columns where it is turned) times b [depth][..], both in shared memory.
template <bool kExact, bool kTurn, int kDepth, int kRow>
__device__ __forceinline__ void multiply(const float* a, const float* b, float (&out)[4]) {
  const int lane = static_cast<int>(threadIdx.x) & 31, g = lane >> 2, t = lane & 3;
  Sum sum[2];  // two chains, half as long
#pragma unroll
  for (int k = 0; k < kDepth; k += 8) {
    const auto in_a = [&](int r, int x) {
      return kTurn ? a[(k + t + x) * kRow + g + r] : a[(g + r) * kRow + k + t + x];
    };
    const float x[4] = {in_a(0, 0), in_a(8, 0), in_a(0, 4), in_a(8, 4)};
    const float y[2] = {b[(k + t) * kColumnRow + g], b[(k + t + 4) * kColumnRow + g]};
    Sum& to = sum[k / 8 % 2];
    if constexpr (kExact) {
      const Split s[4] = {split(x[0]), split(x[1]), split(x[2]), split(x[3])};
      to.add(s, split(y[0]), split(y[1]));
    } else {  // rounded already
      mma_tf32(to.big, __float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
               __float_as_uint(x[3]), __float_as_uint(y[0]), __float_as_uint(y[1]));
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = sum[0][i] + sum[1][i];
}

template <int kWidth>
constexpr int kMatrix = kTokens* static_cast<int>(padded_row(kWidth));

template <int kWidth, bool kExact, bool kBack, bool kWhole>
__global__ __launch_bounds__(kThreads) void states_kernel(DeltaStates a) {
  constexpr int kRow = kMatrix<kWidth> / kTokens, kOwn = (kWidth + 63) / 64;  // times 16 rows of S a warp
  constexpr uint32_t kBytes = kMatrix<kWidth> * sizeof(float);
  __shared__ ArrivalBarrier there[kStages];
  const int64_t slices = (a.width_v + kColumns - 1) / kColumns, sequence = blockIdx.x / slices;
  const int64_t chunks = (a.tokens + kTokens - 1) / kTokens, e = a.width_v, d = a.width_qk;
  const int64_t y0 = blockIdx.x % slices * kColumns, first = kBack ? chunks - 1 : 0, way = kBack ? -1 : 1;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32 % 4, lane = thread & 31;
  const int g = lane >> 2, t = lane & 3, half = thread / 128 * 8;
  float *S = states_shared + 2 * kStages * kMatrix<kWidth>, *U = S + kWidth * kColumnRow;

  const auto bring = [&](int64_t step) {  // one thread
    const int stage = static_cast<int>(step % kStages);
    const int64_t from = (sequence * chunks + first + way * step) * kMatrix<kWidth>;
    float* to = states_shared + 2 * stage * kMatrix<kWidth>;
    there[stage].expect(2 * kBytes);
    there[stage].bring(to, (kBack ? a.K : a.W) + from, kBytes);
    there[stage].bring(to + kMatrix<kWidth>, (kBack ? a.W : a.K) + from, kBytes);
  };
  let_next_start();
  for (int i = thread; i < kWidth * kColumnRow; i += kThreads) S[i] = 0;
  if (thread == 0)
    for (int s = 0; s < kStages; ++s) there[s].set_up();
  wait_for_previous();
  if (thread == 0)
    for (int s = 0; s + 1 < kStages && s < chunks; ++s) bring(s);

  // Elements 2 r and 2 r + 1 of a fragment stand at row g + 8 r, columns `column` and `column` + 1.
  const int column = half + 2 * t;
  const int64_t left = e - y0 - column;
  const Pair<kWhole> pair{left <= 0 ? 0 : left == 1 ? 1 : 2};
  const int64_t token = first * kTokens + warp * 16 + g, eight = 8 * e;
  float* u = a.u + (sequence * a.tokens + token) * e + y0 + column;
  float* states = a.states + ((sequence * chunks + first) * d + warp * 16 + g) * e + y0 + column;
  const int64_t u_step = way * kTokens * e, state_step = way * d * e;
  const float* whole = a.whole + sequence * chunks + first;
  int64_t tokens_left = a.tokens - token;  // from row g of this warp on
  const auto row_there = [&](int tile, int r) {
    return (kWhole && kWidth % 64 == 0) || (warp + 4 * tile) * 16 + g + 8 * r < d;
  };
  const auto rounded = [](float2 x) -> float2 {
    if (kExact) return x;
    return {tf32_round(x.x), tf32_round(x.y)};
  };

  float state[kOwn][4] = {}, product[4], kept = *whole;
  float2 own[2], added[kOwn][2] = {};
  const auto read_u = [&](bool more) {
#pragma unroll
    for (int r = 0; r < 2; ++r) own[r] = pair.read(u + r * eight, more && tokens_left > 8 * r);
  };
  const auto read_added = [&](bool more) {
    if constexpr (kBack)
#pragma unroll
      for (int tile = 0; tile < kOwn; ++tile)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          added[tile][r] = pair.read(states + (8 * tile + r) * eight, more && row_there(tile, r));
  };
  read_u(true);
  read_added(true);

  for (int64_t step = 0; step < chunks; ++step) {
    const int stage = static_cast<int>(step % kStages);
    const bool more = step + 1 < chunks;
    __syncthreads();  // S is there; nobody reads the chunk before
    if (thread == 0 && step + kStages - 1 < chunks) bring(step + kStages - 1);
    there[stage].wait(static_cast<uint32_t>(step / kStages % 2));
    const float *rows = states_shared + 2 * stage * kMatrix<kWidth>, *turned = rows + kMatrix<kWidth>;
    multiply<kExact, false, kWidth, kRow>(rows + warp * 16 * kRow, S + half, product);
    const float share = kept;
    if (more) kept = *(whole += way);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sign = kBack ? 1.0f : -1.0f;
      const float2 here{own[r].x + sign * product[2 * r], own[r].y + sign * product[2 * r + 1]};
      *reinterpret_cast<float2*>(U + (warp * 16 + g + 8 * r) * kColumnRow + column) = rounded(here);
      pair.write(u + r * eight, tokens_left > 8 * r, here);
    }
    u += u_step;
    tokens_left -= way * kTokens;
    read_u(more);
    __syncthreads();  // U is there, and S has been read
#pragma unroll
    for (int tile = 0; tile < kOwn; ++tile) {
      const int row = (warp + 4 * tile) * 16;
      if (row >= kWidth) continue;
      multiply<kExact, true, kTokens, kRow>(turned + row, U + half, product);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float *two = state[tile] + 2 * r, sign = kBack ? -1.0f : 1.0f;
        pair.write(states + (8 * tile + r) * eight, row_there(tile, r), {two[0], two[1]});
        two[0] = share * two[0] + added[tile][r].x + sign * product[2 * r];
        two[1] = share * two[1] + added[tile][r].y + sign * product[2 * r + 1];
        *reinterpret_cast<float2*>(S + (row + g + 8 * r) * kColumnRow + column) = rounded({two[0], two[1]});
      }
    }
    states += state_step;
    read_added(more);
  }
}

template <int kWidth, bool kBack, bool kWhole>
void launch(const DeltaStates& a, bool tf32, void* stream) {
  constexpr const char* kName = kBack ? "delta_attention_states_back" : "delta_attention_states";
  constexpr int kBytes =
      (2 * kStages * kMatrix<kWidth> + (kWidth + kTokens) * kColumnRow) * static_cast<int>(sizeof(float));
  const auto kernel =
      tf32 ? states_kernel<kWidth, false, kBack, kWhole> : states_kernel<kWidth, true, kBack, kWhole>;
  const int64_t blocks = a.sequences * ((a.width_v + kColumns - 1) / kColumns);
  launch_kernel(kernel, blocks_for(blocks, 1, kName), kThreads, kBytes, stream, kName, Start::kEarly, a);
}

template <bool kBack>
void run(const DeltaStates& a, bool tf32, void* stream) {
  const int64_t width = padded_width(a.width_qk);
  const auto at = reinterpret_cast<uintptr_t>(a.u) | reinterpret_cast<uintptr_t>(a.states);
  const bool whole = a.width_qk == width && a.width_v % kColumns == 0 && at % sizeof(float2) == 0;
  const auto go = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    whole ? launch<kWidth, kBack, true>(a, tf32, stream) : launch<kWidth, kBack, false>(a, tf32, stream);
  };
  if (width == 16) return go(std::integral_constant<int, 16>());
  if (width == 32) return go(std::integral_constant<int, 32>());
  if (width == 64) return go(std::integral_constant<int, 64>());
  go(std::integral_constant<int, 128>());
}

}  // namespace

void delta_states_forward(const DeltaStates& a, bool tf32, void* stream) { run<false>(a, tf32, stream); }
void delta_states_backward(const DeltaStates& a, bool tf32, void* stream) { run<true>(a, tf32, stream); }

}  // namespace rankscope::cuda
