#include "kernels/cpu/dispatch.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "base/error.h"
#include "kernels/cpu/bias_relu.h"
#include "kernels/cpu/entropy.h"
#include "kernels/cpu/long_attention.h"
#include "kernels/cpu/normals.h"
#include "kernels/cpu/running_attention.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/small_attention.h"
#include "kernels/cpu/small_spectra.h"
#include "kernels/cpu/squared_error.h"
#include "kernels/cpu/symmetric.h"

namespace rankscope {
namespace simd {

namespace baseline {
extern const Table table;
}
#ifdef RANKSCOPE_X86_KERNELS
namespace avx2 {
extern const Table table;
}
namespace avx512 {
extern const Table table;
}
#endif

const Table& table_of([[maybe_unused]] Isa isa) {
#ifdef RANKSCOPE_X86_KERNELS
  if (isa == Isa::avx512) return avx512::table;
  if (isa == Isa::avx2) return avx2::table;
#endif
  return baseline::table;
}

void* scratch(size_t bytes) {
  constexpr std::align_val_t line{64};
  struct Free {
    void operator()(void* p) const { ::operator delete(p, line); }
  };
  thread_local std::unique_ptr<void, Free> buffer;
  thread_local size_t held = 0;
  if (bytes > held) {
    held = 0;
    buffer.reset();
    buffer.reset(::operator new(bytes, line));
    held = bytes;
  }
  return buffer.get();
}

}  // namespace simd

namespace {

const simd::Table& kernels() {
  static const simd::Table& table = simd::table_of(chosen_isa());
  return table;
}

template <class T>
const simd::TableOf<T>& kernels_of() {
  return kernels();
}

}  // namespace

std::string_view isa_name(Isa isa) {
  return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

bool cpu_has(Isa isa) {
#ifdef RANKSCOPE_X86_KERNELS
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return isa == Isa::baseline;
}

Isa isa_by_name(std::string_view wish) {
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::baseline}) {
    if (!wish.empty() && wish != isa_name(isa)) continue;
    if (cpu_has(isa)) return isa;
    if (!wish.empty())
      throw Error("the CPU or this build has no " + std::string(wish))
          .in("RANKSCOPE_ISA")
          .hint("leave it unset: the best set there is will be taken");
  }
  throw Error("no instruction set is called '" + printable(wish) + "'")
      .in("RANKSCOPE_ISA")
      .hint("one of baseline, avx2, avx512");
}

Isa chosen_isa() {
  static const Isa isa = [] {
    const char* wish = std::getenv("RANKSCOPE_ISA");
    return isa_by_name(wish ? wish : "");
  }();
  return isa;
}

template <class T>
void small_attention_forward(const SmallAttention& a, const T* q, const T* k, const T* v, T* out) {
  kernels_of<T>().attention_forward(a, q, k, v, out);
}

template <class T>
void small_attention_backward(const SmallAttention& a, const T* q, const T* k, const T* v, const T* dout,
                              Rows dout_rows, T* dq, Rows dq_rows, T* dk, Rows dk_rows, T* dv, Rows dv_rows) {
  kernels_of<T>().attention_backward(a, q, k, v, {dout, dout_rows, dq, dk, dv, dq_rows, dk_rows, dv_rows});
}

template <class T>
void skip_norm_forward(const SkipNorm& n, const T* x, const T* u, const T* gain, const T* bias, T* y,
                       T* inverse) {
  kernels_of<T>().skip_norm_forward(n, x, u, gain, bias, y, inverse);
}

template <class T>
void skip_norm_backward(const SkipNorm& n, const T* x, const T* u, const T* gain, const T* inverse,
                        const T* dy, int64_t dy_row, T* dsum, int64_t dsum_row, T* dgain, T* dbias) {
  kernels_of<T>().skip_norm_backward(n, x, u, gain, inverse, {dy, dy_row, dsum, dsum_row, dgain, dbias});
}

template <class T>
double squared_error(int64_t rows, int64_t width, T weight, const T* answer, int64_t answer_row,
                     const T* target, int64_t target_row, T* gradient, int64_t gradient_row) {
  return kernels_of<T>().squared_error(
      {rows, width, weight, answer, target, gradient, answer_row, target_row, gradient_row});
}

template <class T>
void bias_relu(int64_t rows, int64_t width, const T* bias, T* h, int64_t h_row) {
  kernels_of<T>().bias_relu(rows, width, bias, h, h_row);
}

template <class T>
void bias_relu_backward(int64_t rows, int64_t width, const T* h, int64_t h_row, T* dh, int64_t dh_row,
                        T* dbias) {
  kernels_of<T>().bias_relu_backward(rows, width, h, h_row, dh, dh_row, dbias);
}

template <class T>
void linear_attention_forward(const LinearAttention& a, const T* q, const T* k, const T* v, const T* keep,
                              T* out) {
  kernels_of<T>().linear_forward(a, q, k, v, keep, out);
}

template <class T>
void linear_attention_backward(const LinearAttention& a, const T* q, const T* k, const T* v, const T* keep,
                               const T* dout, T* dq, T* dk, T* dv) {
  kernels_of<T>().linear_backward(a, q, k, v, keep, dout, dq, dk, dv);
}

template <class T>
void delta_attention_forward(const DeltaAttention& a, const DeltaInputs<T>& in, T* out, T* states) {
  kernels_of<T>().delta_forward(a, in, out, states);
}

template <class T>
void delta_attention_backward(const DeltaAttention& a, const DeltaInputs<T>& in, const T* states,
                              const T* dout, const DeltaGradients<T>& d) {
  kernels_of<T>().delta_backward(a, in, states, dout, d);
}

#define RANKSCOPE_FOR(T)                                                                                   \
  template void small_attention_forward(const SmallAttention&, const T*, const T*, const T*, T*);          \
  template void small_attention_backward(const SmallAttention&, const T*, const T*, const T*, const T*,    \
                                         Rows, T*, Rows, T*, Rows, T*, Rows);                              \
  template void skip_norm_forward(const SkipNorm&, const T*, const T*, const T*, const T*, T*, T*);        \
  template void skip_norm_backward(const SkipNorm&, const T*, const T*, const T*, const T*, const T*,      \
                                   int64_t, T*, int64_t, T*, T*);                                          \
  template void bias_relu(int64_t, int64_t, const T*, T*, int64_t);                                        \
  template void linear_attention_forward(const LinearAttention&, const T*, const T*, const T*, const T*,   \
                                         T*);                                                              \
  template void linear_attention_backward(const LinearAttention&, const T*, const T*, const T*, const T*,  \
                                          const T*, T*, T*, T*);                                           \
  template void delta_attention_forward(const DeltaAttention&, const DeltaInputs<T>&, T*, T*);             \
  template void delta_attention_backward(const DeltaAttention&, const DeltaInputs<T>&, const T*, const T*, \
                                         const DeltaGradients<T>&);                                        \
  template void bias_relu_backward(int64_t, int64_t, const T*, int64_t, T*, int64_t, T*);                  \
  template double squared_error(int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T*, int64_t)
RANKSCOPE_FOR(float);
RANKSCOPE_FOR(double);
#undef RANKSCOPE_FOR

void fill_normals(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, int64_t count, float* out) {
  kernels().fill_normals(seed, stream, step, first, count, out);
}

int64_t small_spectra_group() { return kernels().small_spectra_group(); }

unsigned small_spectra(const SmallSpectra& shape, const float* a, double* squares, double* centered) {
  return kernels().small_spectra(shape, a, squares, centered);
}

void tridiagonalise(int64_t n, const double* g, double* d, double* e) {
  kernels().tridiagonalise(n, g, d, e);
}

unsigned tridiagonal_eigenvalues(int64_t count, int64_t n, const double* d, const double* e, double* values) {
  return kernels().tridiagonal_eigenvalues(count, n, d, e, values);
}

double row_entropy(const float* p, int64_t n) { return kernels().row_entropy(p, n); }

void long_attention(const LongAttention& a, const LongOperands& in, const LongResults& out, int64_t sample,
                    int64_t head, int64_t segment) {
  kernels().long_attention(a, in, out, sample, head, segment);
}

simd::AdamWStep adamw_step(const AdamW& rule, float lr, int64_t step) {
  const auto t = static_cast<double>(step);
  const double beta1 = rule.beta1, beta2 = rule.beta2;
  simd::AdamWStep s;
  s.keep = static_cast<float>(1.0 - double{lr} * rule.weight_decay);
  s.beta1 = rule.beta1, s.one_minus_beta1 = static_cast<float>(1.0 - beta1);
  s.beta2 = rule.beta2, s.one_minus_beta2 = static_cast<float>(1.0 - beta2);
  s.rate = static_cast<float>(lr / (1.0 - std::pow(beta1, t)));
  s.root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, t)));
  s.epsilon = rule.epsilon;
  return s;
}

void adamw_update(const AdamW& rule, float lr, int64_t step, int64_t count, const float* gradient,
                  float* parameter, float* m, float* v) {
  kernels().adamw_update(adamw_step(rule, lr, step), count, gradient, parameter, m, v);
}

}  // namespace rankscope
