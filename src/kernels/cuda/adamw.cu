// AdamW over a stack of flat parameter buffers, in one pass over gradient, parameter and both moments. The
// gradients are read where they are: a table of them travels in the launch. A block works on one trial and on
// kChunk floats of one segment, so a segment of a single float costs one short block.
#include <cmath>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/train.h"

namespace rankscope::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTileRows = 64, kTileColumns = 32;
constexpr int kChunk = kTileRows * kTileColumns;  // floats a block
constexpr int kMaxSegments = 64;                  // a launch

struct Entry {
  const float* gradient;
  int64_t offset, row_stride, column_stride, trial_stride;
  uint32_t rows, columns, first_block;
  bool turned, wide;  // wide: four floats at a time
};

struct Launch {
  AdamW rule;
  float rest1, rest2;          // 1 - beta
  float log_beta1, log_beta2;  // natural
  int64_t size, rates;
  const int64_t* steps;
  const float* lr;
  const int32_t* alive;
  float *parameter, *m, *v;
  uint32_t blocks, count;  // blocks of a trial, entries
  Entry entries[kMaxSegments];
};
static_assert(sizeof(Launch) <= 4096, "what a launch takes in parameters");

// What a trial's update number comes to.
struct Update {
  float decay, rate, root;  // p = decay p - rate m / (root sqrt(v) + epsilon)
};

// Here and below each rounding is spelled out: what the compiler contracts would depend on the code around
// it, and a gradient's layout must not show in the bits.
__device__ Update update_of(const Launch& a, int64_t step, float lr) {
  const float number = static_cast<float>(step + 1);
  const float correction1 = -expm1f(__fmul_rn(number, a.log_beta1)),
              correction2 = -expm1f(__fmul_rn(number, a.log_beta2));
  return {fmaf(-lr, a.rule.weight_decay, 1.0f), __fdiv_rn(lr, correction1),
          __fdiv_rn(1.0f, __fsqrt_rn(correction2))};
}

__device__ __forceinline__ void update(const Launch& a, const Update& u, float g, float& p, float& m,
                                       float& v) {
  m = fmaf(a.rule.beta1, m, __fmul_rn(a.rest1, g));
  v = fmaf(a.rule.beta2, v, __fmul_rn(__fmul_rn(a.rest2, g), g));
  const float step = __fdiv_rn(__fmul_rn(u.rate, m), fmaf(u.root, __fsqrt_rn(v), a.rule.epsilon));
  p = __fsub_rn(__fmul_rn(u.decay, p), step);
}

__device__ __forceinline__ void update(const Launch& a, const Update& u, float4 g, float4& p, float4& m,
                                       float4& v) {
  update(a, u, g.x, p.x, m.x, v.x);
  update(a, u, g.y, p.y, m.y, v.y);
  update(a, u, g.z, p.z, m.z, v.z);
  update(a, u, g.w, p.w, m.w, v.w);
}

// One float or float4 of the stack; `index` in floats.
template <class Vector>
__device__ __forceinline__ void update_at(const Launch& a, const Update& u, Vector g, int64_t index) {
  Vector* const at_p = reinterpret_cast<Vector*>(a.parameter + index);
  Vector* const at_m = reinterpret_cast<Vector*>(a.m + index);
  Vector* const at_v = reinterpret_cast<Vector*>(a.v + index);
  Vector p = *at_p, m = *at_m, v = *at_v;
  update(a, u, g, p, m, v);
  *at_p = p;
  *at_m = m;
  *at_v = v;
}

// The block's part of a segment in the order of its parameters; `start` is the segment's place in the stack.
template <class Vector>
__device__ void along_rows(const Launch& a, const Update& u, const Entry& e, const float* gradient,
                           int64_t start, uint32_t block) {
  constexpr uint32_t kWidth = sizeof(Vector) / sizeof(float), kItems = kChunk / kWidth;
  const uint32_t columns = e.columns / kWidth, count = e.rows * columns;
  const uint32_t first = block * kItems, end = min(first + kItems, count);
  for (uint32_t i = first + threadIdx.x; i < end; i += kThreads) {
    const uint32_t row = i / columns, column = (i - row * columns) * kWidth;
    const float* const from = gradient + row * e.row_stride + column * e.column_stride;
    update_at(a, u, *reinterpret_cast<const Vector*>(from), start + int64_t{i} * kWidth);
  }
}

// Where the rows of a gradient lie closer together than its columns, a tile goes through shared memory, so
// that both sides are read along their lines.
template <class Vector>
__device__ void turned(const Launch& a, const Update& u, const Entry& e, const float* gradient, int64_t start,
                       uint32_t block, float (&tile)[kTileColumns][kTileRows + 1]) {
  constexpr uint32_t kWidth = sizeof(Vector) / sizeof(float), kAcross = kTileColumns / kWidth;
  const uint32_t across = (e.columns + kTileColumns - 1) / kTileColumns;
  const uint32_t row0 = block / across * kTileRows, column0 = block % across * kTileColumns;
  const uint32_t rows = min(e.rows - row0, kTileRows), columns = min(e.columns - column0, kTileColumns);
  constexpr uint32_t kEach = kChunk / kThreads, kApart = kThreads / kTileRows;
  const uint32_t my_row = threadIdx.x % kTileRows, my_column = threadIdx.x / kTileRows;
  const float* const from =
      gradient + (row0 + my_row) * e.row_stride + (column0 + my_column) * e.column_stride;
  float held[kEach] = {};  // all of it under way before any of it is waited for
#pragma unroll
  for (uint32_t k = 0; k < kEach; ++k)
    if (my_row < rows && my_column + k * kApart < columns) held[k] = from[k * kApart * e.column_stride];
#pragma unroll
  for (uint32_t k = 0; k < kEach; ++k) tile[my_column + k * kApart][my_row] = held[k];
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kChunk / kWidth; i += kThreads) {
    const uint32_t row = i / kAcross, column = i % kAcross * kWidth;
    if (row >= rows || column >= columns) continue;
    Vector g;
    if constexpr (kWidth == 4)
      g = {tile[column][row], tile[column + 1][row], tile[column + 2][row], tile[column + 3][row]};
    else
      g = tile[column][row];
    update_at(a, u, g, start + int64_t{row0 + row} * e.columns + column0 + column);
  }
}

__global__ __launch_bounds__(kThreads) void update_kernel(const __grid_constant__ Launch a) {
  const int64_t t = blockIdx.x / a.blocks;
  const uint32_t block = blockIdx.x % a.blocks;
  const int64_t step = a.steps[t];
  if (a.alive[t] == 0 || step < 0 || step >= a.rates) return;
  const Update u = update_of(a, step, a.lr[t * a.rates + step]);
  uint32_t index = 0;  // of the last entry that starts no later than this block
  for (uint32_t end = a.count; end - index > 1;) {
    const uint32_t middle = (index + end) / 2;
    (a.entries[middle].first_block <= block ? index : end) = middle;
  }
  const Entry& e = a.entries[index];
  const float* const gradient = e.gradient + t * e.trial_stride;
  const int64_t start = t * a.size + e.offset;
  const uint32_t part = block - e.first_block;
  if (e.turned) {
    __shared__ float tile[kTileColumns][kTileRows + 1];
    e.wide ? turned<float4>(a, u, e, gradient, start, part, tile)
           : turned<float>(a, u, e, gradient, start, part, tile);
  } else {
    e.wide ? along_rows<float4>(a, u, e, gradient, start, part)
           : along_rows<float>(a, u, e, gradient, start, part);
  }
}

Entry entry_of(const Launch& a, const AdamWSegment& s) {
  const auto aligned = [](const float* p) { return reinterpret_cast<uintptr_t>(p) % sizeof(float4) == 0; };
  const bool turned = s.rows > 1 && s.columns > 1 && s.row_stride < s.column_stride;
  const bool wide_parameter = aligned(a.parameter + s.offset) && aligned(a.m + s.offset) &&
                              aligned(a.v + s.offset) && a.size % 4 == 0 && s.columns % 4 == 0;
  const bool wide_gradient =
      aligned(s.gradient) && s.column_stride == 1 && s.row_stride % 4 == 0 && s.trial_stride % 4 == 0;
  return {.gradient = s.gradient,
          .offset = s.offset,
          .row_stride = s.row_stride,
          .column_stride = s.column_stride,
          .trial_stride = s.trial_stride,
          .rows = static_cast<uint32_t>(s.rows),
          .columns = static_cast<uint32_t>(s.columns),
          .first_block = a.blocks,
          .turned = turned,
          .wide = wide_parameter && (turned || wide_gradient)};
}

void launch(Launch& a, int64_t trials, cudaStream_t stream) {
  if (a.count == 0) return;
  const unsigned grid = blocks_for(trials * a.blocks, 1, "adamw_update");
  update_kernel<<<grid, kThreads, 0, stream>>>(a);
  check_launch("adamw_update");
  a.count = a.blocks = 0;
}

}  // namespace

void adamw_update(const AdamW& rule, int64_t trials, int64_t size, const int64_t* steps, const float* lr,
                  int64_t rates, const int32_t* alive, std::span<const AdamWSegment> segments,
                  float* parameter, float* m, float* v, void* stream) {
  if (trials == 0) return;
  Launch a{.rule = rule,
           .rest1 = 1.0f - rule.beta1,
           .rest2 = 1.0f - rule.beta2,
           .log_beta1 = static_cast<float>(std::log(double{rule.beta1})),
           .log_beta2 = static_cast<float>(std::log(double{rule.beta2})),
           .size = size,
           .rates = rates,
           .steps = steps,
           .lr = lr,
           .alive = alive,
           .parameter = parameter,
           .m = m,
           .v = v,
           .blocks = 0,
           .count = 0,
           .entries = {}};
  const auto pieces = [](int64_t count, int64_t each) { return (count + each - 1) / each; };
  for (const AdamWSegment& s : segments) {
    if (s.rows == 0 || s.columns == 0) continue;
    const Entry& e = a.entries[a.count++] = entry_of(a, s);
    const int64_t blocks = e.turned ? pieces(s.rows, kTileRows) * pieces(s.columns, kTileColumns)
                                    : pieces(s.rows * s.columns, kChunk);
    // Indices within a segment have 32 bits, up to the end of its last chunk.
    blocks_for(blocks * kChunk, 1, "adamw_update");
    a.blocks += static_cast<uint32_t>(blocks);
    if (a.count == kMaxSegments) launch(a, trials, as_stream(stream));
  }
  launch(a, trials, as_stream(stream));
}

}  // namespace rankscope::cuda
