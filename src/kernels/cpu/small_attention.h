// The CPU's small-context attention: one thread, whole range; callers split sequences over threads.
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
