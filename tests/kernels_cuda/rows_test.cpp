#include <algorithm>
#include <functional>

#include "device.h"
#include "kernels/cuda/neighbours.h"
#include "kernels/cuda/skip_norm.h"
#include "kernels/cuda/squared_error.h"

namespace rankscope {
namespace {

using cuda::Neighbour;
using cuda::SkipNorm;
using cuda::SkipNormKind;

std::vector<float> poisoned(int64_t count) { return std::vector<float>(count, poison()); }

class CudaSkipNorm : public OnDevice {};

template <class T>
struct Norms {
  std::vector<T> y, dx, dgain, dbias;
};

// The definition and its derivative, row by row, in the precision T.
template <class T>
Norms<T> reference(const SkipNorm& n, const std::vector<float>& x, const std::vector<float>& u,
                   const std::vector<float>& gain, const std::vector<float>& bias,
                   const std::vector<float>& dy) {
  const int64_t D = n.width;
  Norms<T> r{std::vector<T>(x.size()), std::vector<T>(x.size()), std::vector<T>(gain.size()),
             std::vector<T>(gain.size())};
  for (int64_t row = 0; row < n.trials * n.tokens; ++row) {
    const int64_t parameters = row / n.tokens * n.parameter_stride;
    const auto column = [&](int64_t c) { return parameters + (n.kind == SkipNormKind::unit ? 0 : c); };
    std::vector<T> z(D);
    T mean = 0, square = 0;
    for (int64_t c = 0; c < D; ++c) {
      z[c] = T(x[row * D + c]) + T(n.branch) * T(u[row * D + c]);
      mean += z[c] / T(D);
    }
    for (T& value : z) {
      if (n.kind == SkipNormKind::layer) value -= mean;
      square += value * value;
    }
    const bool unit = n.kind == SkipNormKind::unit;
    const T scale = 1 / std::sqrt(unit ? square : square / T(D) + T(n.epsilon));
    T along = 0, gradient_mean = 0;
    for (int64_t c = 0; c < D; ++c) {
      z[c] *= scale;
      const T g = T(dy[row * D + c]);
      r.y[row * D + c] =
          T(gain[column(c)]) * z[c] + (n.kind == SkipNormKind::layer ? T(bias[column(c)]) : T(0));
      r.dgain[column(c)] += g * z[c];
      if (n.kind == SkipNormKind::layer) r.dbias[column(c)] += g;
      along += g * T(gain[column(c)]) * z[c] / T(unit ? 1 : D);
      gradient_mean += g * T(gain[column(c)]) / T(D);
    }
    for (int64_t c = 0; c < D; ++c)
      r.dx[row * D + c] = scale * (T(dy[row * D + c]) * T(gain[column(c)]) -
                                   (n.kind == SkipNormKind::layer ? gradient_mean : T(0)) - along * z[c]);
  }
  return r;
}

TEST_F(CudaSkipNorm, IsAsExactAsFloatForEveryKindAndWidth) {
  for (const auto kind : {SkipNormKind::unit, SkipNormKind::rms, SkipNormKind::layer})
    for (const int64_t width : {16, 33, 64, 100, 256})
      for (const int64_t tokens : {1, 7, 130}) {
        const int64_t parameters = kind == SkipNormKind::unit ? 1 : width, stride = parameters + 3;
        const SkipNorm n{kind, 3, tokens, width, 0.125f, 1e-5f, stride, stride};
        const int64_t count = n.trials * tokens * width;
        const auto x = random_floats(count, 1), u = random_floats(count, 2), dy = random_floats(count, 3);
        const auto gain = random_floats(n.trials * stride, 4), bias = random_floats(n.trials * stride, 5);
        const auto exact = reference<double>(n, x, u, gain, bias, dy);
        const auto plain = reference<float>(n, x, u, gain, bias, dy);

        const DeviceBuffer<float> x_(x), u_(u), dy_(dy), gain_(gain), bias_(bias), y_(poisoned(count)),
            dx_(poisoned(count)), du_(poisoned(count)), dgain_(poisoned(gain.size())),
            dbias_(poisoned(bias.size())), work_(poisoned(cuda::skip_norm_workspace(n)));
        cuda::skip_norm_forward(n, x_.data(), u_.data(), gain_.data(), bias_.data(), y_.data(), nullptr);
        cuda::skip_norm_backward(n, x_.data(), u_.data(), gain_.data(), dy_.data(), dx_.data(), du_.data(),
                                 dgain_.data(), dbias_.data(), work_.data(), nullptr);
        const std::string what = " of kind " + std::to_string(static_cast<int>(kind)) + ", " +
                                 std::to_string(tokens) + " x " + std::to_string(width);
        expect_exact_as_float(y_.values(), plain.y, exact.y, "y" + what);
        const auto dx = dx_.values();
        expect_exact_as_float(dx, plain.dx, exact.dx, "dx" + what);
        auto du = du_.values();
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(du[i], n.branch * dx[i]);
        // Parameters lie among others, which stay as they were.
        const auto taken = [&](const auto& all) {
          std::decay_t<decltype(all)> part;
          for (int64_t t = 0; t < n.trials; ++t)
            part.insert(part.end(), all.begin() + t * stride, all.begin() + t * stride + parameters);
          return part;
        };
        const auto dgain = dgain_.values(), dbias = dbias_.values();
        expect_exact_as_float(taken(dgain), taken(plain.dgain), taken(exact.dgain), "dgain" + what);
        if (kind == SkipNormKind::layer)
          expect_exact_as_float(taken(dbias), taken(plain.dbias), taken(exact.dbias), "dbias" + what);
        EXPECT_TRUE(is_poison(dgain[parameters]) && is_poison(dbias[parameters]));
      }
}

TEST_F(CudaSkipNorm, NormsWithoutASkip) {
  const SkipNorm n{SkipNormKind::unit, 1, 5, 48, 1.0f, 0.0f, 1, 1};
  const auto x = random_floats(5 * 48, 1);
  const DeviceBuffer<float> x_(x), gain_({2.0f}), y_(poisoned(5 * 48));
  cuda::skip_norm_forward(n, x_.data(), nullptr, gain_.data(), nullptr, y_.data(), nullptr);
  const auto y = y_.values();
  for (int row = 0; row < 5; ++row) {
    double square = 0;
    for (int c = 0; c < 48; ++c) square += double(y[row * 48 + c]) * y[row * 48 + c];
    EXPECT_NEAR(square, 4.0, 4.0 * 48 * std::numeric_limits<float>::epsilon());
  }
}

class CudaSquaredError : public OnDevice {};

TEST_F(CudaSquaredError, IsTheMeanSquareAndItsGradient) {
  for (const int64_t rows : {1, 31, 1000}) {
    const cuda::SquaredError e{2, rows, 20, 13, 1.0f / static_cast<float>(rows)};
    const auto answers = random_floats(2 * rows * 20, 1), targets = random_floats(2 * rows * 13, 2);
    const DeviceBuffer<float> answers_(answers), targets_(targets), loss_(poisoned(2)),
        gradient_(poisoned(2 * rows * 20)), work_(poisoned(cuda::squared_error_workspace(e)));
    cuda::squared_error(e, answers_.data(), targets_.data(), loss_.data(), gradient_.data(), work_.data(),
                        nullptr);
    const auto loss = loss_.values(), gradient = gradient_.values();
    const double eps = std::numeric_limits<float>::epsilon();
    for (int64_t t = 0; t < 2; ++t) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < 20; ++c) {
          const int64_t at = (t * rows + r) * 20 + c;
          const double difference = c < 13 ? double(answers[at]) - targets[(t * rows + r) * 13 + c] : 0.0;
          sum += difference * difference / rows;
          ASSERT_NEAR(gradient[at], 2 * difference / rows, 4 * eps * std::abs(2 * difference / rows));
        }
      // Positive terms: the error grows with the depth of the sum, not with its length.
      EXPECT_NEAR(loss[t], sum, 32 * eps * sum);
    }
  }
}

class CudaNeighbours : public OnDevice {};

TEST_F(CudaNeighbours, TargetsAreThePointsOfExtremeProduct) {
  for (const auto which : {Neighbour::nearest, Neighbour::farthest})
    for (const auto& [count, queries, d] : {std::tuple<int64_t, int64_t, int64_t>{16, 0, 64},
                                            {1, 0, 3},
                                            {5, 3, 7},
                                            {100, 0, 16},
                                            {256, 2, 256}}) {
      const int64_t sequences = 3, asking = queries > 0 ? queries : count;
      auto points = random_floats(sequences * count * d, 1), asks = random_floats(sequences * queries * d, 2);
      const DeviceBuffer<float> points_(points), asks_(asks), target_(poisoned(sequences * asking * d));
      cuda::neighbour_targets(which, sequences, count, queries, d, points_.data(),
                              queries > 0 ? asks_.data() : nullptr, target_.data(), nullptr);
      const auto raw = points;
      points = points_.values();
      asks = queries > 0 ? asks_.values() : points;
      const auto target = target_.values();
      const double eps = std::numeric_limits<float>::epsilon();
      const auto dot = [&](const float* a, const float* b) {
        double sum = 0;
        for (int64_t c = 0; c < d; ++c) sum += double(a[c]) * b[c];
        return sum;
      };
      for (int64_t i = 0; i < sequences * count; ++i) {  // unit rows, in the direction they had
        const float* row = &points[i * d];
        ASSERT_NEAR(dot(row, row), 1.0, 4 * eps);
        ASSERT_NEAR(dot(row, &raw[i * d]), std::sqrt(dot(&raw[i * d], &raw[i * d])), d * eps);
      }
      for (int64_t i = 0; i < sequences * asking; ++i) {
        const float *ask = &asks[i * d], *answer = &target[i * d];
        const double sign = which == Neighbour::nearest ? 1 : -1;
        double best = -2;
        bool is_a_point = false;
        for (int64_t j = 0; j < count; ++j) {
          const float* point = &points[(i / asking * count + j) * d];
          best = std::max(best, sign * dot(ask, point));
          is_a_point = is_a_point || std::equal(point, point + d, answer);
        }
        ASSERT_TRUE(is_a_point);
        ASSERT_NEAR(sign * dot(ask, answer), best, d * eps);  // but for ties within rounding
      }
    }
}

}  // namespace
}  // namespace rankscope
