#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

/// Each lane sums its own columns of a row; rows are added up in double precision.
template <class T>
double loss(const SquaredError<T>& e) {
  constexpr int W = lanes<T>;
  double sum = 0;
  for (int64_t i = 0; i < e.rows; ++i) {
    const T *answer = e.answer + i * e.answer_row, *target = e.target + i * e.target_row;
    T* gradient = e.gradient ? e.gradient + i * e.gradient_row : nullptr;
    Vec<T> squares = {};
    int64_t c = 0;
    for (; c + W <= e.width; c += W) {
      const Vec<T> miss = load(answer + c) - load(target + c);
      squares += miss * miss;
      if (gradient) store(gradient + c, miss * (2 * e.weight));
    }
    T rest = 0;
    for (; c < e.width; ++c) {
      const T miss = answer[c] - target[c];
      rest += miss * miss;
      if (gradient) gradient[c] = miss * (2 * e.weight);
    }
    for (int l = 0; l < W; ++l) rest += squares[l];
    sum += rest;
  }
  return sum * e.weight;
}

}  // namespace

double squared_error(const SquaredError<float>& e) { return loss(e); }
double squared_error(const SquaredError<double>& e) { return loss(e); }

}  // namespace rankscope::simd::RANKSCOPE_SIMD
