// A row is copied to a buffer that ends in zeros, so that its sums run over whole vectors. What is done
// element by element is left to the compiler: an element's place in its row, and so its rounding, is the same
// in every call.
#include "kernels/cpu/skip_norm.h"

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

template <class T>
T lane_sum(Vec<T> v) {
  T sum = 0;
  for (int l = 0; l < lanes<T>; ++l) sum += v[l];
  return sum;
}

template <class T>
T dot(const T* a, const T* b, int64_t padded) {
  Vec<T> sum = {};
  for (int64_t c = 0; c < padded; c += lanes<T>) sum += load(a + c) * load(b + c);
  return lane_sum<T>(sum);
}

template <class T>
T total(const T* a, int64_t padded) {
  Vec<T> sum = {};
  for (int64_t c = 0; c < padded; c += lanes<T>) sum += load(a + c);
  return lane_sum<T>(sum);
}

template <class T>
struct Buffer {
  T *centred, *slope;  // [padded] each, zero from width on
  int64_t padded;
};

template <class T>
Buffer<T> take_buffer(int64_t width) {
  Buffer<T> b;
  b.padded = (width + lanes<T> - 1) / lanes<T> * lanes<T>;
  b.centred = static_cast<T*>(scratch(2 * static_cast<size_t>(b.padded) * sizeof(T)));
  b.slope = b.centred + b.padded;
  for (int64_t c = 0; c < 2 * b.padded; ++c) b.centred[c] = 0;
  return b;
}

/// x + u, less its mean under the layer norm.
template <class T>
void centre(const SkipNorm& n, const T* __restrict x, const T* __restrict u, const Buffer<T>& b) {
  T* __restrict s = b.centred;
  if (u)
    for (int64_t c = 0; c < n.width; ++c) s[c] = x[c] + u[c];
  else
    for (int64_t c = 0; c < n.width; ++c) s[c] = x[c];
  if (n.kind != SkipNorm::Kind::layer) return;
  const T mean = total(s, b.padded) / static_cast<T>(n.width);
  for (int64_t c = 0; c < n.width; ++c) s[c] -= mean;
}

template <class T>
void forward(const SkipNorm& n, const T* x, const T* u, const T* gain, const T* bias, T* y, T* inverse) {
  const Buffer<T> b = take_buffer<T>(n.width);
  const bool unit = n.kind == SkipNorm::Kind::unit;
  for (int64_t i = 0; i < n.rows; ++i) {
    centre(n, x + i * n.x_row, u ? u + i * n.u_row : nullptr, b);
    const T squares = dot(b.centred, b.centred, b.padded);
    const T scale = 1 / root(unit ? squares : squares / static_cast<T>(n.width) + static_cast<T>(n.epsilon));
    inverse[i] = scale;
    const T* __restrict z = b.centred;
    T* __restrict to = y + i * n.y_row;
    if (unit) {
      const T factor = gain[0] * scale;
      for (int64_t c = 0; c < n.width; ++c) to[c] = factor * z[c];
    } else if (n.kind == SkipNorm::Kind::rms) {
      for (int64_t c = 0; c < n.width; ++c) to[c] = gain[c] * (scale * z[c]);
    } else {
      for (int64_t c = 0; c < n.width; ++c) to[c] = gain[c] * (scale * z[c]) + bias[c];
    }
  }
}

template <class T>
void backward(const SkipNorm& n, const T* x, const T* u, const T* gain, const T* inverse,
              const SkipNormGradients<T>& d) {
  const Buffer<T> b = take_buffer<T>(n.width);
  const bool unit = n.kind == SkipNorm::Kind::unit, layer = n.kind == SkipNorm::Kind::layer;
  const T share = unit ? T(1) : 1 / static_cast<T>(n.width);
  for (int64_t i = 0; i < n.rows; ++i) {
    centre(n, x + i * n.x_row, u ? u + i * n.u_row : nullptr, b);
    const T scale = inverse[i];
    T* __restrict z = b.centred, * __restrict slope = b.slope;
    const T* __restrict dy = d.y + i * d.y_row;
    for (int64_t c = 0; c < n.width; ++c) z[c] *= scale;
    if (unit) {
      for (int64_t c = 0; c < n.width; ++c) slope[c] = dy[c];
      d.gain[0] += dot(slope, z, b.padded);
      for (int64_t c = 0; c < n.width; ++c) slope[c] *= gain[0];
    } else {
      T* __restrict dgain = d.gain;
      for (int64_t c = 0; c < n.width; ++c) {
        dgain[c] += dy[c] * z[c];
        slope[c] = dy[c] * gain[c];
      }
    }
    if (layer) {
      T* __restrict dbias = d.bias;
      for (int64_t c = 0; c < n.width; ++c) dbias[c] += dy[c];
    }
    // What would only move the row along itself, or all of it alike, does not move y.
    const T along = share * dot(slope, z, b.padded), alike = layer ? share * total(slope, b.padded) : T(0);
    T* __restrict to = d.sum + i * d.sum_row;
    for (int64_t c = 0; c < n.width; ++c) to[c] = scale * (slope[c] - alike - z[c] * along);
  }
}

}  // namespace

void skip_norm_forward(const SkipNorm& n, const float* x, const float* u, const float* gain,
                       const float* bias, float* y, float* inverse) {
  forward(n, x, u, gain, bias, y, inverse);
}
void skip_norm_forward(const SkipNorm& n, const double* x, const double* u, const double* gain,
                       const double* bias, double* y, double* inverse) {
  forward(n, x, u, gain, bias, y, inverse);
}
void skip_norm_backward(const SkipNorm& n, const float* x, const float* u, const float* gain,
                        const float* inverse, const SkipNormGradients<float>& d) {
  backward(n, x, u, gain, inverse, d);
}
void skip_norm_backward(const SkipNorm& n, const double* x, const double* u, const double* gain,
                        const double* inverse, const SkipNormGradients<double>& d) {
  backward(n, x, u, gain, inverse, d);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
