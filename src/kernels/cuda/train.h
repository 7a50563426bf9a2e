// What training needs of CUDA, as plain functions on device pointers: no torch, no CUDA type in sight. Where
// there is no CUDA, absent.cpp stands in and throws. Every launch goes to `stream` (a cudaStream_t) and may
// be captured in a graph: nothing synchronises, nothing allocates.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/adamw.h"
#include "kernels/small_attention.h"

namespace rankscope::cuda {

/// Whether this build has kernels for CUDA.
bool available();

/// As kernels/cpu/small_attention.h, on device pointers (float). a.heads and a.scale are host arrays, copied
/// into the launch (at most kMaxTrials trials a call: callers split).
constexpr int64_t kMaxTrials = 64;
void small_attention_forward(const SmallAttention& a, const float* q, const float* k, const float* v,
                             float* out, void* stream);
void small_attention_backward(const SmallAttention& a, const float* q, const float* k, const float* v,
                              const float* dout, Rows dout_rows, float* dq, Rows dq_rows, float* dk,
                              Rows dk_rows, float* dv, Rows dv_rows, void* stream);

/// out [trials, count]: trial t gets the normals of (seeds[t], stream_id, steps[t]) from index 0 on, as
/// kernels/cpu/normals.h defines them. seeds and steps are device arrays, so a captured graph moves on as
/// steps do.
void fill_normals(int64_t trials, const uint64_t* seeds, uint32_t stream_id, const int64_t* steps,
                  int64_t count, float* out, void* stream);

/// The gradient of one parameter [rows, columns], which is dense and starts at `offset` of each trial's row.
/// The gradient's strides are its own, in floats.
struct AdamWSegment {
  const float* gradient = nullptr;
  int64_t offset = 0, rows = 0, columns = 0;
  int64_t row_stride = 0, column_stride = 1, trial_stride = 0;
};

/// One AdamW update of what the segments (a host array, copied into the launch) cover of parameter, m and v
/// [trials, size]. steps[t] is the update's number from 0 and picks the learning rate of lr [trials, rates].
/// A trial whose alive[t] is 0, or which has no rate for its step, is left untouched. The bits of the result
/// do not depend on where the gradients lie.
void adamw_update(const AdamW& rule, int64_t trials, int64_t size, const int64_t* steps, const float* lr,
                  int64_t rates, const int32_t* alive, std::span<const AdamWSegment> segments,
                  float* parameter, float* m, float* v, void* stream);

}  // namespace rankscope::cuda
