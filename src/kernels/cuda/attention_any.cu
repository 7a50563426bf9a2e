// Attention for every shape the fast kernels do not take: any head width, up to 256 queries and keys, hard
// attention, values shared by all heads, rows that are not aligned. One block a head (or a sequence, where
// heads share values: their gradients then add up in a fixed order), one warp a query, and in the second half
// of the backward pass one warp a key.
#include <algorithm>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr size_t kSharedBytes = 227 * 1024;  // what a block may have on sm_90

struct Matrix {
  const float* data;
  int64_t stride;
};

// Copies rows to shared memory where there is room. An odd stride keeps lanes that read one column apart.
__device__ Matrix stage(Matrix from, int rows, int width, float* to) {
  if (to == nullptr) return from;
  const int stride = width | 1;
  for (int i = threadIdx.x; i < rows * width; i += kThreads) {
    const int r = i / width, c = i - r * width;
    to[r * stride + c] = from.data[r * from.stride + c];
  }
  return {to, stride};
}

// out[r] = <x, row r>, one lane a row.
__device__ void products(const float* x, Matrix rows, int count, int width, int lane, float* out) {
  for (int r = lane; r < count; r += kWarp) {
    float sum = 0;
    for (int c = 0; c < width; ++c) sum = fmaf(x[c], rows.data[r * rows.stride + c], sum);
    out[r] = sum;
  }
}

// to = factor * sum_r weights[r] * row r (added to what is there if `add`). Lanes stand over columns, and
// over slices of the rows where the columns do not fill a warp.
__device__ void mix(const float* weights, Matrix rows, int count, int width, int lane, float factor, bool add,
                    float* to) {
  int columns = 1;
  while (columns < width && columns < static_cast<int>(kWarp)) columns *= 2;
  for (int first = 0; first < width; first += columns) {
    const int c = first + lane % columns;
    float sum = 0;
    if (c < width)
      for (int r = lane / columns; r < count; r += kWarp / columns)
        sum = fmaf(weights[r], rows.data[r * rows.stride + c], sum);
    for (int step = kWarp / 2; step >= columns; step /= 2) sum += __shfl_xor_sync(kEveryLane, sum, step);
    if (c < width && lane < columns) to[c] = add ? to[c] + factor * sum : factor * sum;
  }
}

// What one query's scores come to: the largest (in powers of two), one over the sum of powers, the first key
// that has the largest.
struct Statistics {
  float peak, share;
  int winner;
};

// Scores to weights, in place.
__device__ Statistics weigh(float* scores, int keys, float scale, bool hard, int lane) {
  Statistics s{-INFINITY, 1, keys};
  for (int j = lane; j < keys; j += kWarp) {
    scores[j] *= scale;
    s.peak = fmaxf(s.peak, scores[j]);
  }
  s.peak = warp_max(s.peak);
  if (hard) {
    for (int j = lane; j < keys; j += kWarp)
      if (scores[j] == s.peak) s.winner = min(s.winner, j);
    for (int step = kWarp / 2; step > 0; step /= 2)
      s.winner = min(s.winner, __shfl_xor_sync(kEveryLane, s.winner, step));
    for (int j = lane; j < keys; j += kWarp) scores[j] = j == s.winner ? 1.0f : 0.0f;
    return s;
  }
  float sum = 0;
  for (int j = lane; j < keys; j += kWarp) {
    scores[j] = exp2_fast(scores[j] - s.peak);
    sum += scores[j];
  }
  s.share = 1.0f / warp_sum(sum);
  for (int j = lane; j < keys; j += kWarp) scores[j] *= s.share;
  return s;
}

template <class T>
__device__ T* head_rows(const Operand<T>& x, const Group& group, int64_t row, int column) {
  return x.at(group.trial[blockIdx.y], row) + column;
}

// The keys of a head, in shared memory where there is room for them.
size_t staged_bytes(int64_t rows, int64_t width) { return sizeof(float) * rows * (width | 1); }

__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f, bool staged) {
  extern __shared__ float shared[];
  const Group& g = f.group;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t sequence = blockIdx.x / g.heads;
  const int head = blockIdx.x - sequence * g.heads;
  const int value_column = g.shared_values ? 0 : head * g.width_v;
  float* scores = shared + warp * g.keys;
  const Matrix v{head_rows(f.v, g, sequence * g.keys, value_column), f.v.rows.row};
  const Matrix k = stage({head_rows(f.k, g, sequence * g.keys, head * g.width_qk), f.k.rows.row}, g.keys,
                         g.width_qk, staged ? shared + kWarps * g.keys : nullptr);
  __syncthreads();
  for (int i = warp; i < g.queries; i += kWarps) {
    const int64_t row = sequence * g.queries + i;
    products(head_rows(f.q, g, row, head * g.width_qk), k, g.keys, g.width_qk, lane, scores);
    weigh(scores, g.keys, g.scale[blockIdx.y] * kLog2E, g.hard, lane);
    __syncwarp();
    mix(scores, v, g.keys, g.width_v, lane, 1.0f, false, head_rows(f.out, g, row, head * g.width_v));
    __syncwarp();
  }
}

__global__ __launch_bounds__(kThreads) void backward_kernel(const __grid_constant__ Backward b, bool staged) {
  extern __shared__ float shared[];
  const Group& g = b.group;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int most = max(g.queries, g.keys);
  const float scale = g.scale[blockIdx.y];
  float* weights = shared + warp * 2 * most;
  float* gradients = weights + most;
  float* peak =
      shared + kWarps * 2 * most;  // and the rest of what the second half needs to know of each query
  float* share = peak + g.queries;
  float* mean = share + g.queries;
  int* winner = reinterpret_cast<int*>(mean + g.queries);
  float* first_rows = staged ? reinterpret_cast<float*>(winner + g.queries) : nullptr;
  float* second_rows = staged ? first_rows + most * (g.width_qk | 1) : nullptr;

  const int64_t sequence = g.shared_values ? blockIdx.x : blockIdx.x / g.heads;
  const int first_head = g.shared_values ? 0 : blockIdx.x - sequence * g.heads;
  const int last_head = g.shared_values ? g.heads : first_head + 1;
  const int64_t query_row = sequence * g.queries, key_row = sequence * g.keys;
  for (int head = first_head; head < last_head; ++head) {
    const int column = head * g.width_qk, out_column = head * g.width_v;
    const int value_column = g.shared_values ? 0 : out_column;
    const Matrix q{head_rows(b.q, g, query_row, column), b.q.rows.row};
    const Matrix k{head_rows(b.k, g, key_row, column), b.k.rows.row};
    const Matrix v{head_rows(b.v, g, key_row, value_column), b.v.rows.row};
    const Matrix dout{head_rows(b.dout, g, query_row, out_column), b.dout.rows.row};

    const Matrix near_k = stage(k, g.keys, g.width_qk, first_rows);
    const Matrix near_v = stage(v, g.keys, g.width_v, second_rows);
    __syncthreads();
    for (int i = warp; i < g.queries; i += kWarps) {
      products(q.data + i * q.stride, near_k, g.keys, g.width_qk, lane, weights);
      const Statistics s = weigh(weights, g.keys, scale * kLog2E, g.hard, lane);
      products(dout.data + i * dout.stride, near_v, g.keys, g.width_v, lane, gradients);
      float sum = 0;
      for (int j = lane; j < g.keys; j += kWarp) sum = fmaf(weights[j], gradients[j], sum);
      sum = warp_sum(sum);
      for (int j = lane; j < g.keys; j += kWarp)
        gradients[j] = g.hard ? 0.0f : weights[j] * (gradients[j] - sum);
      if (lane == 0) {
        peak[i] = s.peak;
        share[i] = s.share;
        mean[i] = sum;
        winner[i] = s.winner;
      }
      __syncwarp();
      mix(gradients, near_k, g.keys, g.width_qk, lane, scale, false,
          head_rows(b.dq, g, query_row + i, column));
      __syncwarp();
    }
    __syncthreads();

    const Matrix near_q = stage(q, g.queries, g.width_qk, first_rows);
    const Matrix near_dout = stage(dout, g.queries, g.width_v, second_rows);
    __syncthreads();
    for (int j = warp; j < g.keys; j += kWarps) {
      products(k.data + j * k.stride, near_q, g.queries, g.width_qk, lane, weights);
      products(v.data + j * v.stride, near_dout, g.queries, g.width_v, lane, gradients);
      for (int i = lane; i < g.queries; i += kWarp) {
        const float soft = exp2_fast(fmaf(weights[i], scale * kLog2E, -peak[i])) * share[i];
        weights[i] = g.hard ? (winner[i] == j ? 1.0f : 0.0f) : soft;
        gradients[i] = g.hard ? 0.0f : soft * (gradients[i] - mean[i]);
      }
      __syncwarp();
      mix(gradients, near_q, g.queries, g.width_qk, lane, scale, false,
          head_rows(b.dk, g, key_row + j, column));
      if (b.dv.data != nullptr)
        mix(weights, near_dout, g.queries, g.width_v, lane, 1.0f, head > first_head,
            head_rows(b.dv, g, key_row + j, value_column));
      __syncwarp();
    }
    __syncthreads();
  }
}

template <class Kernel>
void allow_shared(Kernel kernel, size_t bytes, const char* name) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        name);
}

}  // namespace

void any_forward(const Forward& f, cudaStream_t stream) {
  const Group& g = f.group;
  const size_t least = sizeof(float) * kWarps * g.keys;
  const size_t whole = least + staged_bytes(g.keys, g.width_qk);
  const bool staged = whole <= kSharedBytes;
  const size_t bytes = staged ? whole : least;
  allow_shared(forward_kernel, bytes, "any_forward");
  const dim3 grid(blocks_for(int64_t{g.sequences} * g.heads, 1, "any_forward"), g.members);
  forward_kernel<<<grid, kThreads, bytes, stream>>>(f, staged);
  check_launch("any_forward");
}

void any_backward(const Backward& b, cudaStream_t stream) {
  const Group& g = b.group;
  const int64_t most = std::max(g.queries, g.keys);
  const size_t least = sizeof(float) * (kWarps * 2 * most + 4 * g.queries);
  const size_t whole = least + staged_bytes(most, g.width_qk) + staged_bytes(most, g.width_v);
  const bool staged = whole <= kSharedBytes;
  const size_t bytes = staged ? whole : least;
  allow_shared(backward_kernel, bytes, "any_backward");
  const dim3 grid(blocks_for(int64_t{g.sequences} * (g.shared_values ? 1 : g.heads), 1, "any_backward"),
                  g.members);
  backward_kernel<<<grid, kThreads, bytes, stream>>>(b, staged);
  check_launch("any_backward");
}

}  // namespace rankscope::cuda
