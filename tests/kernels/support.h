// What the tests of the training kernels share: every instruction set of this machine, random numbers,
// errors.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "kernels/cpu/dispatch.h"

namespace rankscope {

inline std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (cpu_has(isa)) isas.push_back(isa);
  return isas;
}

inline std::vector<double> random_normals(uint32_t stream, int64_t count) {
  std::vector<double> x(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    x[static_cast<size_t>(i)] = Philox{11, stream, 0}.normal(static_cast<uint64_t>(i));
  return x;
}

template <class T>
std::vector<T> rounded(const std::vector<double>& x) {
  return std::vector<T>(x.begin(), x.end());
}

template <class A, class B>
double largest_difference(const std::vector<A>& a, const std::vector<B>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto e =
        static_cast<double>(std::fabs(static_cast<long double>(a[i]) - static_cast<long double>(b[i])));
    if (!(e <= worst)) worst = e;  // a NaN is a difference too
  }
  return worst;
}

template <class T>
double largest(const std::vector<T>& a) {
  return largest_difference(a, std::vector<double>(a.size(), 0.0));
}

/// At most twice the error of the plain computation in the same precision. Where that happens to be exact,
/// `depth` roundings of the largest value are allowed.
template <class T>
double tolerance(const std::vector<T>& plain, const std::vector<long double>& exact, int64_t depth) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  return std::fmax(2 * largest_difference(plain, exact),
                   static_cast<double>(depth) * epsilon * largest(exact));
}

}  // namespace rankscope
