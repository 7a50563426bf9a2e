// Tokens in rows: the forward pass, and the gradient of x.
#include "kernels/cuda/mlp.cuh"

namespace rankscope::cuda {
namespace {

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

// kForward: y = relu(x first^T + bias) second^T + out_bias, and the signs are written.
// Otherwise y = (x first^T where the sign was positive) second^T.
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

}  // namespace rankscope::cuda
