#include "kernels/cuda/mlp.h"

#include <algorithm>

#include "device.h"

namespace rankscope {
namespace {

using cuda::kMlpWidth;
using cuda::Mlp;

class CudaMlp : public OnDevice {};

float factor(float x) { return tf32_nearest(x); }
double factor(double x) { return x; }

struct Operands {
  std::vector<float> x, W_in, b_in, W_out, b_out, dy;
};

template <class T>
struct Results {
  std::vector<T> y, dx, dW_in, db_in, dW_out;
};

// The plain composition: products of factors rounded as the type says, sums in double.
template <class T>
Results<T> reference(const Mlp& m, const Operands& o) {
  const int64_t D = kMlpWidth, H = m.hidden;
  Results<T> r{std::vector<T>(o.x.size()), std::vector<T>(o.x.size()), std::vector<T>(o.W_in.size()),
               std::vector<T>(m.trials * H), std::vector<T>(o.W_in.size())};
  std::vector<double> dW_in(o.W_in.size()), dW_out(o.W_in.size()), db(m.trials * H);
  const auto f = [](auto v) { return static_cast<double>(factor(static_cast<T>(v))); };
  for (int64_t t = 0; t < m.trials; ++t)
    for (int64_t i = t * m.rows; i < (t + 1) * m.rows; ++i) {
      const float *x = &o.x[i * D], *dy = &o.dy[i * D];
      std::vector<double> y(D), dx(D);
      for (int64_t c = 0; c < D && !o.b_out.empty(); ++c) y[c] = o.b_out[t * D + c];
      for (int64_t j = 0; j < H; ++j) {
        const float* W_in = &o.W_in[(t * H + j) * D];
        double h = o.b_in.empty() ? 0.0 : o.b_in[t * H + j], dh = 0;
        for (int64_t c = 0; c < D; ++c) {
          h += f(x[c]) * f(W_in[c]);
          dh += f(dy[c]) * f(o.W_out[(t * D + c) * H + j]);
        }
        if (h <= 0) continue;
        db[t * H + j] += dh;
        for (int64_t c = 0; c < D; ++c) {
          y[c] += f(h) * f(o.W_out[(t * D + c) * H + j]);
          dx[c] += f(dh) * f(W_in[c]);
          dW_in[(t * H + j) * D + c] += f(dh) * f(x[c]);
          dW_out[(t * D + c) * H + j] += f(h) * f(dy[c]);
        }
      }
      std::copy(y.begin(), y.end(), r.y.begin() + i * D);
      std::copy(dx.begin(), dx.end(), r.dx.begin() + i * D);
    }
  std::copy(dW_in.begin(), dW_in.end(), r.dW_in.begin());
  std::copy(dW_out.begin(), dW_out.end(), r.dW_out.begin());
  std::copy(db.begin(), db.end(), r.db_in.begin());
  return r;
}

std::vector<float> poisoned(int64_t count) { return std::vector<float>(count, poison()); }

// A factor on the device as the kernels want it.
struct Prepared {
  DeviceBuffer<float> rounded, turned;
  Prepared(const std::vector<float>& x, int64_t trials, int64_t rows, int64_t padded, int64_t columns)
      : rounded(poisoned(trials * padded * columns)), turned(poisoned(trials * padded * columns)) {
    const DeviceBuffer<float> x_(x);
    cuda::mlp_prepare(trials, rows, padded, columns, x_.data(), rows * columns, rounded.data(), turned.data(),
                      nullptr);
    cudaDeviceSynchronize();
  }
};

TEST_F(CudaMlp, IsAsExactAsTf32) {
  for (const auto& [trials, rows, hidden, biased] :
       {std::tuple<int64_t, int64_t, int64_t, bool>{1, 1, 256, true},
        {2, 130, 512, true},
        {3, 33, 256, false},
        {1, 1000, 256, true}}) {
    const Mlp m{trials, rows, hidden};
    const int64_t D = kMlpWidth, tokens = trials * rows * D, weights = trials * hidden * D;
    Operands o{random_floats(tokens, 1),  random_floats(weights, 2),    random_floats(trials * hidden, 3),
               random_floats(weights, 4), random_floats(trials * D, 5), random_floats(tokens, 6)};
    if (!biased) o.b_in.clear(), o.b_out.clear();
    const auto exact = reference<double>(m, o);
    const auto plain = reference<float>(m, o);

    const DeviceBuffer<float> x_(o.x), b_in_(o.b_in), b_out_(o.b_out), dy_(o.dy), y_(poisoned(tokens)),
        dx_(poisoned(tokens));
    const Prepared W_in(o.W_in, trials, hidden, hidden, D), W_out(o.W_out, trials, D, D, hidden),
        rows_(o.x, trials, rows, m.padded_rows(), D), slopes_(o.dy, trials, rows, m.padded_rows(), D);
    const DeviceBuffer<uint32_t> signs_(std::vector<uint32_t>(cuda::mlp_sign_words(m)));
    const float *b_in = biased ? b_in_.data() : nullptr, *b_out = biased ? b_out_.data() : nullptr;
    cuda::mlp_forward(m, x_.data(), W_in.rounded.data(), b_in, W_out.rounded.data(), b_out, y_.data(),
                      signs_.data(), nullptr);
    cuda::mlp_backward_tokens(m, dy_.data(), W_out.turned.data(), W_in.turned.data(), signs_.data(),
                              dx_.data(), nullptr);
    const int64_t splits = cuda::mlp_splits(m);
    const DeviceBuffer<float> dW_in_(poisoned(splits * weights)), dW_out_(poisoned(splits * weights)),
        db_in_(poisoned(splits * trials * hidden));
    cuda::mlp_backward_weights(m, {rows_.rounded.data(), rows_.turned.data()},
                               {slopes_.rounded.data(), slopes_.turned.data()}, W_in.rounded.data(), b_in,
                               W_out.turned.data(), dW_in_.data(), dW_out_.data(), db_in_.data(), nullptr);
    const auto total = [&](const std::vector<float>& parts) {
      std::vector<float> sum(parts.size() / splits);
      for (size_t i = 0; i < parts.size(); ++i) sum[i % sum.size()] += parts[i];
      return sum;
    };
    const std::string what =
        " of " + std::to_string(trials) + " x " + std::to_string(rows) + " x " + std::to_string(hidden);
    expect_exact_as_float(y_.values(), plain.y, exact.y, "y" + what);
    expect_exact_as_float(dx_.values(), plain.dx, exact.dx, "dx" + what);
    expect_exact_as_float(total(dW_in_.values()), plain.dW_in, exact.dW_in, "dW_in" + what);
    expect_exact_as_float(total(dW_out_.values()), plain.dW_out, exact.dW_out, "dW_out" + what);
    expect_exact_as_float(total(db_in_.values()), plain.db_in, exact.db_in, "db_in" + what);
  }
}

TEST_F(CudaMlp, ATrialThatDivergedLeavesTheOthersAlone) {
  const Mlp m{2, 40, 256};
  const int64_t D = kMlpWidth;
  auto x = random_floats(2 * 40 * D, 1);
  std::fill(x.begin(), x.begin() + 40 * D, std::numeric_limits<float>::quiet_NaN());
  const DeviceBuffer<float> x_(x), y_(poisoned(2 * 40 * D));
  const Prepared W_in(random_floats(2 * 256 * D, 2), 2, 256, 256, D),
      W_out(random_floats(2 * 256 * D, 3), 2, D, D, 256);
  const DeviceBuffer<uint32_t> signs_(std::vector<uint32_t>(cuda::mlp_sign_words(m)));
  cuda::mlp_forward(m, x_.data(), W_in.rounded.data(), nullptr, W_out.rounded.data(), nullptr, y_.data(),
                    signs_.data(), nullptr);
  const auto y = y_.values();
  for (int64_t i = 0; i < 2 * 40 * D; ++i) ASSERT_EQ(std::isnan(y[i]), i < 40 * D) << i;
}

}  // namespace
}  // namespace rankscope
