#include "kernels/cuda/mlp.h"

#include <algorithm>

#include "device.h"

namespace rankscope {
namespace {

using cuda::kMlpWidth;
using cuda::Mlp;

class CudaMlp : public OnDevice {};

// TF32: 10 bits behind the leading one, rounded to nearest.
float factor(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000u) & 0xffffe000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
double factor(double x) { return x; }

struct Operands {
  std::vector<float> x, W_in, b_in, W_out, b_out, dy;
};

template <class T>
struct Results {
  std::vector<T> y, dx, dW_in, db_in, dW_out_t;
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
          dW_out[(t * H + j) * D + c] += f(h) * f(dy[c]);
        }
      }
      std::copy(y.begin(), y.end(), r.y.begin() + i * D);
      std::copy(dx.begin(), dx.end(), r.dx.begin() + i * D);
    }
  std::copy(dW_in.begin(), dW_in.end(), r.dW_in.begin());
  std::copy(dW_out.begin(), dW_out.end(), r.dW_out_t.begin());
  std::copy(db.begin(), db.end(), r.db_in.begin());
  return r;
}

std::vector<float> poisoned(int64_t count) { return std::vector<float>(count, poison()); }

// [trials, rows, columns] to [trials, columns, rows].
std::vector<float> turned(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i), t = at / (rows * columns), inside = at % (rows * columns);
    out[t * rows * columns + inside % columns * rows + inside / columns] = x[i];
  }
  return out;
}

TEST_F(CudaMlp, IsAsExactAsTf32) {
  for (const auto& [trials, rows, hidden, biased] :
       {std::tuple<int64_t, int64_t, int64_t, bool>{1, 1, 128, true},
        {2, 130, 256, true},
        {3, 33, 128, false},
        {1, 1000, 384, true}}) {
    const Mlp m{trials, rows, hidden};
    const int64_t D = kMlpWidth, tokens = trials * rows * D, weights = trials * hidden * D;
    Operands o{random_floats(tokens, 1),  random_floats(weights, 2),    random_floats(trials * hidden, 3),
               random_floats(weights, 4), random_floats(trials * D, 5), random_floats(tokens, 6)};
    if (!biased) o.b_in.clear(), o.b_out.clear();
    const auto exact = reference<double>(m, o);
    const auto plain = reference<float>(m, o);

    const DeviceBuffer<float> x_(o.x), W_in_(o.W_in), b_in_(o.b_in), W_out_(o.W_out), b_out_(o.b_out),
        dy_(o.dy), W_in_t_(turned(o.W_in, hidden, D)), W_out_t_(turned(o.W_out, D, hidden)),
        y_(poisoned(tokens)), dx_(poisoned(tokens));
    const DeviceBuffer<uint32_t> signs_(std::vector<uint32_t>(cuda::mlp_sign_words(m)));
    const float *b_in = biased ? b_in_.data() : nullptr, *b_out = biased ? b_out_.data() : nullptr;
    cuda::mlp_forward(m, x_.data(), W_in_.data(), b_in, W_out_.data(), b_out, y_.data(), signs_.data(),
                      nullptr);
    cuda::mlp_backward_tokens(m, dy_.data(), W_out_t_.data(), W_in_t_.data(), signs_.data(), dx_.data(),
                              nullptr);
    const int64_t splits = cuda::mlp_splits(m);
    const DeviceBuffer<float> dW_in_(poisoned(splits * weights)), dW_out_t_(poisoned(splits * weights)),
        db_in_(poisoned(splits * trials * hidden));
    cuda::mlp_backward_weights(m, x_.data(), dy_.data(), W_in_.data(), b_in, W_out_t_.data(), dW_in_.data(),
                               dW_out_t_.data(), db_in_.data(), nullptr);
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
    expect_exact_as_float(total(dW_out_t_.values()), plain.dW_out_t, exact.dW_out_t, "dW_out" + what);
    expect_exact_as_float(total(db_in_.values()), plain.db_in, exact.db_in, "db_in" + what);
  }
}

TEST_F(CudaMlp, ATrialThatDivergedLeavesTheOthersAlone) {
  const Mlp m{2, 40, 128};
  const int64_t D = kMlpWidth;
  auto x = random_floats(2 * 40 * D, 1);
  std::fill(x.begin(), x.begin() + 40 * D, std::numeric_limits<float>::quiet_NaN());
  const DeviceBuffer<float> x_(x), W_in_(random_floats(2 * 128 * D, 2)),
      W_out_(random_floats(2 * 128 * D, 3)), y_(poisoned(2 * 40 * D));
  cuda::mlp_forward(m, x_.data(), W_in_.data(), nullptr, W_out_.data(), nullptr, y_.data(), nullptr, nullptr);
  const auto y = y_.values();
  for (int64_t i = 0; i < 2 * 40 * D; ++i) ASSERT_EQ(std::isnan(y[i]), i < 40 * D) << i;
}

}  // namespace
}  // namespace rankscope
