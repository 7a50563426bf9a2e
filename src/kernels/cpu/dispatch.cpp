#include "kernels/cpu/dispatch.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "base/error.h"
#include "kernels/cpu/normals.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/small_attention.h"

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

template <>
void small_attention_forward(const SmallAttention& a, const float* q, const float* k, const float* v,
                             float* out) {
  kernels().forward_float(a, q, k, v, out);
}
template <>
void small_attention_forward(const SmallAttention& a, const double* q, const double* k, const double* v,
                             double* out) {
  kernels().forward_double(a, q, k, v, out);
}
template <>
void small_attention_backward(const SmallAttention& a, const float* q, const float* k, const float* v,
                              const float* dout, Rows dout_rows, float* dq, Rows dq_rows, float* dk,
                              Rows dk_rows, float* dv, Rows dv_rows) {
  kernels().backward_float(a, q, k, v, {dout, dout_rows, dq, dk, dv, dq_rows, dk_rows, dv_rows});
}
template <>
void small_attention_backward(const SmallAttention& a, const double* q, const double* k, const double* v,
                              const double* dout, Rows dout_rows, double* dq, Rows dq_rows, double* dk,
                              Rows dk_rows, double* dv, Rows dv_rows) {
  kernels().backward_double(a, q, k, v, {dout, dout_rows, dq, dk, dv, dq_rows, dk_rows, dv_rows});
}

void fill_normals(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, int64_t count, float* out) {
  kernels().fill_normals(seed, stream, step, first, count, out);
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
