// A block keeps the weights of 64 columns of Q, K and V, and its warps take one sequence after another
// through them: projections, scores and mixing are products on the tensor cores whose fragments fit each
// other, so nothing of a head passes through memory. What is needed turned (values, and in the backward pass
// queries and keys) is projected turned.
#include "kernels/cuda/projected_attention.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/attention_groups.cuh"
#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/projection.cuh"
#include "kernels/cuda/softmax.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kTokens = static_cast<int>(kProjectedTokens), kThreads = 256, kWarps = kThreads / kWarp;
static_assert(kProjectedWidth == kInner);

struct Input {
  Group group;
  Operand<const float> x;
  const float *W, *b;
  int64_t W_trial, b_trial;
  int32_t columns, parts;  // the sequences are cut into so many parts, one a block
};

// What this block works on.
struct Place {
  int trial, column, first, end;  // first column of the slab, sequences
  float scale;

  __device__ __forceinline__ explicit Place(const Input& in) {
    const int part = blockIdx.x % in.parts;
    trial = in.group.trial[blockIdx.y];
    column = blockIdx.x / in.parts * kSlab;
    first = in.group.sequences * part / in.parts;
    end = in.group.sequences * (part + 1) / in.parts;
    scale = in.group.scale[blockIdx.y];
  }
  __device__ __forceinline__ void load(const Input& in, Slabs& slabs, float value_scale) const {
    slabs.load(in.W + trial * in.W_trial + int64_t{column} * kInner,
               in.b == nullptr ? nullptr : in.b + trial * in.b_trial + column, in.columns, value_scale);
    __syncthreads();
  }
};

// 16 columns at a time; two heads of 8 share them.
template <int W>
struct Shape {
  static constexpr int kHeads = W < 16 ? 16 / W : 1, kColumns = W < 16 ? 16 : W;
  static __device__ __forceinline__ int head_of(int half) { return kHeads == 1 ? 0 : half; }
};

// Rows g and g + 8 of an output, from column 2t on.
struct Output {
  float* row[2];
  Output() = default;
  __device__ __forceinline__ Output(float* to, int64_t stride, Lane lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r) row[r] = to + (lane.g + 8 * r) * stride + 2 * lane.t;
  }
  __device__ __forceinline__ void store(int64_t column, const Fragment& x) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) store_floats<2>(row[r] + column, &x.x[2 * r]);
  }
};

// 1 / x to 1 ulp.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Powers of two of scores, in place. `scale` is not negative and holds the factor log2(e).
__device__ __forceinline__ RowStatistics powers(Square& s, float scale) {
  RowStatistics rows;
#pragma unroll
  for (int r = 0; r < 2; ++r) rows.peak[r] = scale * across_keys_max(s, r);
  for_each_place([&](int n, int i) { s.x[n][i] = exp2_fast(fmaf(s.x[n][i], scale, -rows.peak[i / 2])); });
#pragma unroll
  for (int r = 0; r < 2; ++r) rows.share[r] = reciprocal_fast(across_keys_sum(s, r));
  return rows;
}

struct ForwardMemory {
  Slabs slabs;
  Turner turner[kWarps];
};

// A warp takes two sequences at a time: each weight that comes out of shared memory serves both.
constexpr int kAtOnce = 2;

template <int W>
__global__ __launch_bounds__(kThreads, 2) void forward_kernel(const __grid_constant__ Input in,
                                                              const __grid_constant__ Operand<float> out) {
  using Sh = Shape<W>;
  extern __shared__ float4 memory[];
  ForwardMemory& shared = *reinterpret_cast<ForwardMemory*>(memory);
  const Slabs& slabs = shared.slabs;
  Turner& turner = shared.turner[threadIdx.x / kWarp];
  const Place place(in);
  place.load(in, shared.slabs, 1.0f);
  const Lane lane;
  const int warp = threadIdx.x / kWarp;
  for (int first = place.first + kAtOnce * warp; first < place.end; first += kAtOnce * kWarps) {
    Tokens tokens[kAtOnce];
    Output to[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      // Where the last one has no neighbour it is worked out twice, to the same numbers.
      const int64_t row = int64_t{min(first + s, place.end - 1)} * kTokens;
      tokens[s].load(in.x.at(place.trial, row), in.x.rows.row, lane);
      to[s] = Output(out.at(place.trial, row) + place.column, out.rows.row, lane);
    }
#pragma unroll 1
    for (int column = 0; column < kSlab; column += Sh::kColumns) {
      Square weights[kAtOnce * Sh::kHeads] = {};
#pragma unroll 1
      for (int c = column; c < column + Sh::kColumns; c += 16)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Projection<kAtOnce> q(slabs, 0, c + 8 * half, tokens, lane),
              k(slabs, 1, c + 8 * half, tokens, lane);
#pragma unroll
          for (int s = 0; s < kAtOnce; ++s)
            add_row_products(q.of[s], k.of[s], weights[s * Sh::kHeads + Sh::head_of(half)]);
        }
      RowStatistics rows[kAtOnce * Sh::kHeads];
#pragma unroll
      for (int h = 0; h < kAtOnce * Sh::kHeads; ++h) rows[h] = powers(weights[h], place.scale * kLog2E);
#pragma unroll 1
      for (int c = column; c < column + Sh::kColumns; c += 16) {
        const Projection<kAtOnce> left(slabs, 2, c, tokens, lane), right(slabs, 2, c + 8, tokens, lane);
#pragma unroll
        for (int s = 0; s < kAtOnce; ++s) {
          turner.put(left.of[s], right.of[s], lane);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int h = s * Sh::kHeads + Sh::head_of(half);
            float values[2][2];
            turner.take(half, lane, values);
            Fragment z = Mixer(weights[h]).mix(values);
#pragma unroll
            for (int i = 0; i < 4; ++i) z.x[i] *= rows[h].share[i / 2];
            to[s].store(c + 8 * half, z);
          }
        }
      }
    }
  }
}

struct Gradient {
  Operand<const float> dout;
  Operand<float> dqkv;
};

// dout of one sequence and slab; rows are 4 floats longer, so that columns are read from different banks.
struct Slopes {
  float x[kTokens][kSlab + 4];

  __device__ __forceinline__ void load(const float* from, int64_t stride) {
    constexpr int kVectors = kSlab / 4;
    __syncwarp();  // the sequence before has been read
#pragma unroll
    for (int i = 0; i < kTokens * kVectors / static_cast<int>(kWarp); ++i) {
      const int at = i * static_cast<int>(kWarp) + static_cast<int>(threadIdx.x % kWarp);
      const int row = at / kVectors, column = at % kVectors * 4;
      copy_async(&x[row][column], from + row * stride + column);
    }
    copy_commit();
  }
  __device__ __forceinline__ void finish() const {
    copy_wait<0>();
    __syncwarp();
  }
  __device__ __forceinline__ Fragment rows(int first, Lane lane) const {
    Fragment out;
#pragma unroll
    for (int r = 0; r < 2; ++r) load_floats<2>(&x[lane.g + 8 * r][first + 2 * lane.t], &out.x[2 * r]);
    out.round_to_tf32();
    return out;
  }
  __device__ __forceinline__ void take(int first, Lane lane, float (&turned)[2][2]) const {
    Fragment out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.x[i] = x[8 * (i / 2) + 2 * lane.t + i % 2][first + lane.g];
    out.round_to_tf32();
#pragma unroll
    for (int i = 0; i < 4; ++i) turned[i / 2][i % 2] = out.x[i];
  }
};

// The products over the columns of one head, each also transposed. V has the scores' scale as a factor, so
// that the gradients of the scores come with it.
struct Products {
  Square qk{}, kq{}, dout_v{}, v_dout{};
};

// What mixing takes: p (dp - sum_j p dp) with dp = <dout_i, v_j>, and transposed.
struct Gradients {
  Square ds, ds_turned, p_turned;

  __device__ __forceinline__ void find(const Products& products, float scale, Lane lane) {
    Square p = products.qk, part;
    const Square& dp = products.dout_v;
    const RowStatistics rows = powers(p, scale);
    for_each_place([&](int n, int i) {
      p.x[n][i] *= rows.share[i / 2];
      part.x[n][i] = p.x[n][i] * dp.x[n][i];
    });
    const float mean[2] = {across_keys_sum(part, 0), across_keys_sum(part, 1)};
    for_each_place([&](int n, int i) { ds.x[n][i] = p.x[n][i] * (dp.x[n][i] - mean[i / 2]); });
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        // Lanes with g = 2t + e hold the statistics of query 8n + 2t + e as those of row n.
        const int from = 4 * (2 * lane.t + e);
        const float peak = __shfl_sync(kEveryLane, rows.peak[n], from),
                    share = __shfl_sync(kEveryLane, rows.share[n], from),
                    query_mean = __shfl_sync(kEveryLane, mean[n], from);
#pragma unroll
        for (int i = e; i < 4; i += 2) {
          p_turned.x[n][i] = exp2_fast(fmaf(products.kq.x[n][i], scale, -peak)) * share;
          ds_turned.x[n][i] = p_turned.x[n][i] * (products.v_dout.x[n][i] - query_mean);
        }
      }
  }
};

struct BackwardMemory {
  Slabs slabs;
  Turner turner[kWarps];
  Slopes slopes[kWarps];
};

template <int W>
__global__ __launch_bounds__(kThreads, 2) void backward_kernel(const __grid_constant__ Input in,
                                                               const __grid_constant__ Gradient g) {
  using Sh = Shape<W>;
  constexpr bool kKept = W <= 16;  // Q and K of 16 columns fit the registers, more are projected again
  extern __shared__ float4 memory[];
  BackwardMemory& shared = *reinterpret_cast<BackwardMemory*>(memory);
  const Slabs& slabs = shared.slabs;
  Turner& turner = shared.turner[threadIdx.x / kWarp];
  Slopes& slopes = shared.slopes[threadIdx.x / kWarp];
  const Place place(in);
  place.load(in, shared.slabs, place.scale);
  const Lane lane;
  for (int sequence = place.first + threadIdx.x / kWarp; sequence < place.end; sequence += kWarps) {
    const int64_t row = int64_t{sequence} * kTokens;
    slopes.load(g.dout.at(place.trial, row) + place.column, g.dout.rows.row);
    Tokens tokens[1];
    tokens[0].load(in.x.at(place.trial, row), in.x.rows.row, lane);
    slopes.finish();
    const Output to(g.dqkv.at(place.trial, row) + place.column, g.dqkv.rows.row, lane);
#pragma unroll 1
    for (int column = 0; column < kSlab; column += Sh::kColumns) {
      Fragment q[2], k[2];
      Products products[Sh::kHeads];
#pragma unroll 1
      for (int c = column; c < column + Sh::kColumns; c += 16)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Products& p = products[Sh::head_of(half)];
          q[half] = Projection<1>(slabs, 0, c + 8 * half, tokens, lane).of[0];
          k[half] = Projection<1>(slabs, 1, c + 8 * half, tokens, lane).of[0];
          add_row_products(q[half], k[half], p.qk);
          add_row_products(k[half], q[half], p.kq);
          const Fragment v = Projection<1>(slabs, 2, c + 8 * half, tokens, lane).of[0];
          const Fragment dout = slopes.rows(c + 8 * half, lane);
          add_row_products(dout, v, p.dout_v);
          add_row_products(v, dout, p.v_dout);
        }
      Gradients gradients[Sh::kHeads];
#pragma unroll
      for (int h = 0; h < Sh::kHeads; ++h) gradients[h].find(products[h], place.scale * kLog2E, lane);
#pragma unroll 1
      for (int c = column; c < column + Sh::kColumns; c += 16) {
        const auto mix = [&](Square Gradients::*weights, int half, const float(&turned)[2][2], int part) {
          const Mixer mixer(gradients[Sh::head_of(half)].*weights);
          to.store(int64_t{part} * in.columns + c + 8 * half, mixer.mix(turned));
        };
        const auto mix_turned = [&](Square Gradients::*weights, const Fragment(&x)[2], int part) {
          turner.put(x[0], x[1], lane);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float turned[2][2];
            turner.take(half, lane, turned);
            mix(weights, half, turned, part);
          }
        };
        if constexpr (!kKept)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            q[half] = Projection<1>(slabs, 0, c + 8 * half, tokens, lane).of[0];
            k[half] = Projection<1>(slabs, 1, c + 8 * half, tokens, lane).of[0];
          }
        mix_turned(&Gradients::ds, k, 0);
        mix_turned(&Gradients::ds_turned, q, 1);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float turned[2][2];
          slopes.take(c + 8 * half, lane, turned);
          mix(&Gradients::p_turned, half, turned, 2);
        }
      }
    }
  }
}

// Enough blocks for several rounds on every multiprocessor, but no warp without a sequence.
int32_t parts_of(const Group& group, int64_t slabs) {
  constexpr int64_t kBlocks = 1024;
  const int64_t wanted = kBlocks / (slabs * group.members) + 1;
  return static_cast<int32_t>(std::clamp<int64_t>(wanted, 1, (group.sequences + kWarps - 1) / kWarps));
}

template <class Kernel, class Output>
void launch(Kernel kernel, size_t bytes, Input in, const Output& out, cudaStream_t stream) {
  constexpr const char* kName = "projected_attention";
  const int64_t slabs = in.columns / kSlab;
  in.parts = parts_of(in.group, slabs);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        kName);
  const dim3 grid(blocks_for(slabs * in.parts, 1, kName), in.group.members);
  kernel<<<grid, kThreads, bytes, stream>>>(in, out);
  check_launch(kName);
}

// Calls use(input, width of a head as a constant) for each number of heads among the trials.
template <class Use>
void for_each_width(const ProjectedAttention& a, const float* x, const float* W, const float* b, Use use) {
  if (a.trials > kMaxTrials) throw Error("more trials than one call takes").in("projected_attention");
  for (int64_t t = 0; t < a.trials; ++t)
    if (!projected_attention_takes(kProjectedTokens, kProjectedWidth, a.columns, a.heads[t]))
      throw Error("heads of a width that these kernels do not have").in("projected_attention");
  if (std::any_of(a.scale, a.scale + a.trials, [](float scale) { return !(scale >= 0); }))
    throw Error("a negative scale of the scores").in("projected_attention");
  if (a.sequences == 0) return;
  SmallAttention shape;
  shape.trials = a.trials;
  shape.sequences = a.sequences;
  shape.queries = shape.keys = kProjectedTokens;
  shape.width_qk = shape.width_v = a.columns;
  shape.heads = a.heads;
  shape.scale = a.scale;
  for_each_group(shape, [&](const Group& group) {
    const Input in{group, {x, a.x}, W, b, a.W_trial, a.b_trial, static_cast<int32_t>(a.columns), 1};
    switch (group.width_qk) {
      case 8:
        return use(in, std::integral_constant<int, 8>());
      case 16:
        return use(in, std::integral_constant<int, 16>());
      case 32:
        return use(in, std::integral_constant<int, 32>());
      default:
        return use(in, std::integral_constant<int, 64>());
    }
  });
}

}  // namespace

bool projected_attention_takes(int64_t tokens, int64_t width, int64_t columns, int64_t heads) {
  if (tokens != kProjectedTokens || width != kProjectedWidth || columns < 1 || columns % kSlab != 0 ||
      heads < 1 || columns % heads != 0)
    return false;
  const int64_t head = columns / heads;
  return head == 8 || head == 16 || head == 32 || head == 64;
}

void projected_attention_forward(const ProjectedAttention& a, const float* x, const float* W, const float* b,
                                 float* out, void* stream) {
  for_each_width(a, x, W, b, [&](const Input& in, auto width) {
    launch(forward_kernel<decltype(width)::value>, sizeof(ForwardMemory), in, Operand<float>{out, a.out},
           as_stream(stream));
  });
}

void projected_attention_backward(const ProjectedAttention& a, const float* x, const float* W, const float* b,
                                  const float* dout, Rows dout_rows, float* dqkv, Rows dqkv_rows,
                                  void* stream) {
  for_each_width(a, x, W, b, [&](const Input& in, auto width) {
    launch(backward_kernel<decltype(width)::value>, sizeof(BackwardMemory), in,
           Gradient{{dout, dout_rows}, {dqkv, dqkv_rows}}, as_stream(stream));
  });
}

}  // namespace rankscope::cuda
