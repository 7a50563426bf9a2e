// Causal attention as a state that runs along the tokens, at a cost that grows with their number alone. Both
// forms work in chunks: inside a chunk every pair of tokens is compared, from chunk to chunk a state is
// carried. Plain structs and raw pointers; kernels/cpu and kernels/cuda both speak this.
#pragma once

#include <cstdint>

namespace rankscope {

/// Tokens of a chunk.
constexpr int64_t kRunningChunk = 64;

constexpr int64_t running_chunks(int64_t tokens) { return (tokens + kRunningChunk - 1) / kRunningChunk; }

/// The monomials of a polynomial in q . k, so that f(q . k) = sum_m phi_m(q) phi_m(k). Monomial m is
/// factor[m] times channel[m] of the vector times monomial parent[m], which stands before it; channel -1 is
/// the number one.
struct Monomials {
  int64_t count = 0;
  const int32_t *parent = nullptr, *channel = nullptr;
  const double* factor = nullptr;
};

/// The same without parents, as a GPU reads them: monomial m is factor[m] times up to three channels, a byte
/// each from the lowest on; kNoChannel is the number one.
struct PackedMonomials {
  const uint32_t* channels = nullptr;
  const float* factor = nullptr;
};
constexpr uint32_t kNoChannel = 255;

/// Linear attention that may forget, of one sequence:
///   out_i = sum_{j <= i} G_ij f(q_i . k_j) v_j,  G_ij = keep_{j+1} ... keep_i,
/// with q, k [tokens, width_qk], v and out [tokens, width_v], keep [tokens] or null (all ones). f is s itself
/// for degree 0, otherwise 1 + s + ... + s^degree / degree!, and `monomials` are that polynomial's.
struct LinearAttention {
  int64_t tokens = 0, width_qk = 0, width_v = 0;
  int degree = 0;
  Monomials monomials = {};
  PackedMonomials packed = {};  // on the device, for kernels/cuda
};

/// Rows of the state.
inline int64_t state_rows(const LinearAttention& a) { return a.degree == 0 ? a.width_qk : a.monomials.count; }

/// The delta rule of one sequence, whose state S [width_qk, width_v] looks up what it holds for a key and
/// writes the difference:
///   u_t = write_t (v_t - keep_t S^T k_t),  S <- keep_t S + k_t u_t^T,  out_t = S^T q_t,
/// with q, k [tokens, width_qk], v and out [tokens, width_v], write [tokens], keep [tokens] or null (all
/// ones).
struct DeltaAttention {
  int64_t tokens = 0, width_qk = 0, width_v = 0;
};

template <class T>
struct DeltaInputs {
  const T *q = nullptr, *k = nullptr, *v = nullptr, *write = nullptr, *keep = nullptr;
};

template <class T>
struct DeltaGradients {
  T *q = nullptr, *k = nullptr, *v = nullptr, *write = nullptr, *keep = nullptr;  // keep may be null
};

}  // namespace rankscope
