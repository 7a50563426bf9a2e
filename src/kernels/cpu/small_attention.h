// The CPU's small-context attention: one thread, whole range; callers split sequences over threads. Each
// sequence of each trial gives the same bits however they are split.
//
// Rows a multiple of 2 KiB apart push each other out of the first-level cache: a projection's row stride of 3
// * width + 16 floats instead of 3 * width takes a tenth (512 columns in heads of 8) to two fifths (4096 in
// heads of 64) off the time of wide heads.
#pragma once

#include "kernels/small_attention.h"

namespace rankscope {

template <class T>  // float, double
void small_attention_forward(const SmallAttention& a, const T* q, const T* k, const T* v, T* out);

/// Writes (does not add to) dq, dk, dv, laid out as dq_rows, dk_rows, dv_rows say. dv may be null: then it is
/// not wanted.
template <class T>
void small_attention_backward(const SmallAttention& a, const T* q, const T* k, const T* v, const T* dout,
                              Rows dout_rows, T* dq, Rows dq_rows, T* dk, Rows dk_rows, T* dv, Rows dv_rows);

}  // namespace rankscope
