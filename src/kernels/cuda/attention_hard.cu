// Hard attention: the first largest score takes all. A block has a few heads of a sequence (all of them where
// they share the values' gradient), a warp one query; that gradient goes key by key, each the sum of what its
// queries were given, in their order.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarp, kMaxTokens = 256, kHeads = 4;

// Plain products: the tensor cores' three-part ones could break a tie that is exact.
__device__ int first_largest(const float* q, const float* k, int64_t stride, int keys, int width, float scale,
                             int lane) {
  float best = -INFINITY;
  int winner = keys;
  for (int j = lane; j < keys; j += kWarp) {
    float score = 0;
    for (int c = 0; c < width; ++c) score = fmaf(q[c], k[j * stride + c], score);
    score *= scale;
    if (score > best) {
      best = score;
      winner = j;
    }
  }
  if (best < warp_max(best)) winner = keys;
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2)
    winner = min(winner, __shfl_xor_sync(kEveryLane, winner, step));
  return min(winner, keys - 1);  // scores that are not numbers have no largest
}

struct Place {
  int trial, lane, warp, first_head, last_head;
  int64_t query_row, key_row;
  float scale;
};

int head_groups(const Group& g, bool together) { return together ? 1 : (g.heads + kHeads - 1) / kHeads; }

// gridDim.y counts the groups of heads.
__device__ __forceinline__ Place find_place(const Group& g) {
  const int each = gridDim.y == 1 ? g.heads : kHeads, first = blockIdx.y * each;
  return {g.trial[blockIdx.z],
          static_cast<int>(threadIdx.x % kWarp),
          static_cast<int>(threadIdx.x / kWarp),
          first,
          min(g.heads, first + each),
          int64_t{blockIdx.x} * g.queries,
          int64_t{blockIdx.x} * g.keys,
          g.scale[blockIdx.z]};
}

__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f) {
  const Group& g = f.group;
  const Place p = find_place(g);
  const int heads = p.last_head - p.first_head;
  for (int unit = p.warp; unit < heads * g.queries; unit += kWarps) {
    const int i = unit / heads, head = p.first_head + unit - i * heads;
    const int winner = first_largest(f.q.at(p.trial, p.query_row + i) + head * g.width_qk,
                                     f.k.at(p.trial, p.key_row) + head * g.width_qk, f.k.rows.row, g.keys,
                                     g.width_qk, p.scale, p.lane);
    const float* v = f.v.at(p.trial, p.key_row + winner) + (g.shared_values ? 0 : head * g.width_v);
    float* out = f.out.at(p.trial, p.query_row + i) + head * g.width_v;
    for (int c = p.lane; c < g.width_v; c += kWarp) out[c] = v[c];
  }
}

__device__ void clear_rows(const Operand<float>& x, int trial, int64_t row, int rows, int column, int width) {
  for (int i = threadIdx.x; i < rows * width; i += kThreads)
    x.at(trial, row + i / width)[column + i % width] = 0;
}

__global__ __launch_bounds__(kThreads) void backward_kernel(const __grid_constant__ Backward b) {
  __shared__ int winners[kMaxTokens];
  const Group& g = b.group;
  const Place p = find_place(g);
  const int column = p.first_head * g.width_qk, width = (p.last_head - p.first_head) * g.width_qk;
  clear_rows(b.dq, p.trial, p.query_row, g.queries, column, width);
  clear_rows(b.dk, p.trial, p.key_row, g.keys, column, width);
  if (b.dv.data == nullptr) return;
  for (int head = p.first_head; head < p.last_head; ++head) {
    for (int i = p.warp; i < g.queries; i += kWarps) {
      const int winner = first_largest(b.q.at(p.trial, p.query_row + i) + head * g.width_qk,
                                       b.k.at(p.trial, p.key_row) + head * g.width_qk, b.k.rows.row, g.keys,
                                       g.width_qk, p.scale, p.lane);
      if (p.lane == 0) winners[i] = winner;
    }
    __syncthreads();
    for (int place = threadIdx.x; place < g.keys * g.width_v; place += kThreads) {
      const int j = place / g.width_v, c = place - j * g.width_v;
      float& dv = b.dv.at(p.trial, p.key_row + j)[c + (g.shared_values ? 0 : head * g.width_v)];
      float sum = g.shared_values && head > 0 ? dv : 0.0f;
      for (int i = 0; i < g.queries; ++i)
        if (winners[i] == j) sum += b.dout.at(p.trial, p.query_row + i)[head * g.width_v + c];
      dv = sum;
    }
    __syncthreads();
  }
}

}  // namespace

void hard_forward(const Forward& f, cudaStream_t stream) {
  forward_kernel<<<dim3(f.group.sequences, head_groups(f.group, false), f.group.members), kThreads, 0,
                   stream>>>(f);
  check_launch("hard_forward");
}

void hard_backward(const Backward& b, cudaStream_t stream) {
  backward_kernel<<<dim3(b.group.sequences, head_groups(b.group, b.group.shared_values), b.group.members),
                    kThreads, 0, stream>>>(b);
  check_launch("hard_backward");
}

}  // namespace rankscope::cuda
