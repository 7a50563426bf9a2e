// The CPU's running attention: one sequence, one thread; callers split sequences over threads. A sequence
// gives the same bits in whatever company.
#pragma once

#include "kernels/running_attention.h"

namespace rankscope {

template <class T>  // float, double
void linear_attention_forward(const LinearAttention& a, const T* q, const T* k, const T* v, const T* keep,
                              T* out);

/// Writes (does not add to) dq, dk and dv. Nothing but the inputs is needed again: queries meet the state on
/// the way forward, keys and values meet its gradient on the way back.
template <class T>
void linear_attention_backward(const LinearAttention& a, const T* q, const T* k, const T* v, const T* keep,
                               const T* dout, T* dq, T* dk, T* dv);

/// `states`, where not null, takes the state before each chunk, [running_chunks, width_qk, width_v], for the
/// way back.
template <class T>
void delta_attention_forward(const DeltaAttention& a, const DeltaInputs<T>& in, T* out, T* states);

/// Writes (does not add to) the gradients.
template <class T>
void delta_attention_backward(const DeltaAttention& a, const DeltaInputs<T>& in, const T* states,
                              const T* dout, const DeltaGradients<T>& d);

}  // namespace rankscope
