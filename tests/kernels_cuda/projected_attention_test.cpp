#include "kernels/cuda/projected_attention.h"

#include <algorithm>

#include "base/error.h"
#include "device.h"
#include "kernels/cuda/train.h"

namespace rankscope {
namespace {

constexpr int64_t kTokens = cuda::kProjectedTokens, kWidth = cuda::kProjectedWidth;

class CudaProjectedAttention : public OnDevice {};

struct Shape {
  std::vector<int32_t> heads{8};
  int64_t sequences = 3, columns = 64;
  bool biased = true;
  int64_t gap = 0;  // floats between the rows of out, dout and dqkv, and again between trials
  std::string name() const {
    std::string text =
        std::to_string(sequences) + " sequences, " + std::to_string(columns) + " columns, heads";
    for (int32_t h : heads) text += " " + std::to_string(h);
    return text;
  }
  int64_t rows() const { return sequences * kTokens; }
  int64_t trials() const { return static_cast<int64_t>(heads.size()); }
  Rows spread(int64_t width) const { return {rows() * (width + gap) + gap, width + gap}; }
};

template <class T>
struct Result {
  std::vector<T> out, dqkv;
};

struct Problem {
  Shape shape;
  std::vector<float> scale, x, W, b, dout;

  explicit Problem(const Shape& s) : shape(s) {
    const int64_t T = s.trials();
    x = random_floats(T * s.rows() * kWidth, 1);
    W = random_floats(T * 3 * s.columns * kWidth, 2);
    for (float& w : W) w *= 0.15f;  // Q, K and V of size 1.2
    b = random_floats(T * 3 * s.columns, 3);
    dout = random_floats(T * s.rows() * s.columns, 4);
    for (int64_t t = 0; t < T; ++t)
      scale.push_back(static_cast<float>((1 + 0.25 * t) /
                                         std::sqrt(double(s.columns) / s.heads[static_cast<size_t>(t)])));
  }

  // The plain composition: factors of every product exact (double) or rounded to TF32 (float).
  template <class T>
  Result<T> reference() const {
    const int64_t C = shape.columns;
    const auto f = [](auto v) {
      if constexpr (std::is_same_v<T, double>)
        return static_cast<double>(v);
      else
        return static_cast<double>(tf32_nearest(v));
    };
    Result<T> r{std::vector<T>(dout.size()), std::vector<T>(3 * dout.size())};
    for (int64_t t = 0; t < shape.trials(); ++t) {
      const int64_t heads = shape.heads[static_cast<size_t>(t)], w = C / heads;
      for (int64_t s = 0; s < shape.sequences; ++s) {
        const int64_t first = (t * shape.sequences + s) * kTokens;
        std::vector<T> qkv(kTokens * 3 * C);
        for (int64_t i = 0; i < kTokens; ++i)
          for (int64_t c = 0; c < 3 * C; ++c) {
            double sum = shape.biased ? b[t * 3 * C + c] : 0.0;
            for (int64_t k = 0; k < kWidth; ++k)
              sum += f(x[(first + i) * kWidth + k]) * f(W[(t * 3 * C + c) * kWidth + k]);
            qkv[i * 3 * C + c] = static_cast<T>(sum);
          }
        const auto at = [&](int64_t i, int64_t part, int64_t c) { return i * 3 * C + part * C + c; };
        T* d = &r.dqkv[first * 3 * C];
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t i = 0; i < kTokens; ++i) {
            std::vector<T> p(kTokens), dp(kTokens);
            for (int64_t j = 0; j < kTokens; ++j) {
              for (int64_t c = h * w; c < (h + 1) * w; ++c) {
                p[j] += T(f(qkv[at(i, 0, c)]) * f(qkv[at(j, 1, c)]));
                dp[j] += T(f(dout[(first + i) * C + c]) * f(qkv[at(j, 2, c)]));
              }
              p[j] *= T(scale[t]);
            }
            const T peak = *std::max_element(p.begin(), p.end());
            T sum = 0, mean = 0;
            for (T& v : p) sum += v = std::exp(v - peak);
            for (int64_t j = 0; j < kTokens; ++j) mean += (p[j] /= sum) * dp[j];
            for (int64_t j = 0; j < kTokens; ++j) {
              const T ds = T(scale[t]) * p[j] * (dp[j] - mean);
              for (int64_t c = h * w; c < (h + 1) * w; ++c) {
                r.out[(first + i) * C + c] += T(f(p[j]) * f(qkv[at(j, 2, c)]));
                d[at(i, 0, c)] += T(f(ds) * f(qkv[at(j, 1, c)]));
                d[at(j, 1, c)] += T(f(ds) * f(qkv[at(i, 0, c)]));
                d[at(j, 2, c)] += T(f(p[j]) * f(dout[(first + i) * C + c]));
              }
            }
          }
      }
    }
    return r;
  }

  // Rows of `width` floats without gaps, laid out with them.
  std::vector<float> spread(const std::vector<float>& dense, int64_t width) const {
    const Rows rows = shape.spread(width);
    std::vector<float> out(shape.trials() * rows.trial, poison());
    for (int64_t i = 0; i < static_cast<int64_t>(dense.size()); ++i) out[place(i, width)] = dense[i];
    return out;
  }
  std::vector<float> gather(const std::vector<float>& laid_out, int64_t width) const {
    std::vector<float> out(shape.trials() * shape.rows() * width);
    std::vector<bool> used(laid_out.size());
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      out[i] = laid_out[place(i, width)];
      used[place(i, width)] = true;
    }
    for (size_t i = 0; i < used.size(); ++i)
      EXPECT_TRUE(used[i] || is_poison(laid_out[i])) << "a gap was written at " << i;
    return out;
  }

  Result<float> on_device() const {
    const int64_t C = shape.columns;
    const Rows rows = shape.spread(C), rows3 = shape.spread(3 * C);
    const cuda::ProjectedAttention a{shape.trials(),
                                     shape.sequences,
                                     C,
                                     shape.heads.data(),
                                     scale.data(),
                                     {shape.rows() * kWidth, kWidth},
                                     rows,
                                     3 * C * kWidth,
                                     3 * C};
    const DeviceBuffer<float> x_(x), W_(W), b_(b), dout_(spread(dout, C)),
        out_(std::vector<float>(shape.trials() * rows.trial, poison())),
        dqkv_(std::vector<float>(shape.trials() * rows3.trial, poison()));
    const float* bias = shape.biased ? b_.data() : nullptr;
    cuda::projected_attention_forward(a, x_.data(), W_.data(), bias, out_.data(), nullptr);
    cuda::projected_attention_backward(a, x_.data(), W_.data(), bias, dout_.data(), rows, dqkv_.data(), rows3,
                                       nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return {gather(out_.values(), C), gather(dqkv_.values(), 3 * C)};
  }

 private:
  int64_t place(int64_t i, int64_t width) const {
    const Rows rows = shape.spread(width);
    const int64_t each = shape.rows() * width;
    return i / each * rows.trial + i % each / width * rows.row + i % width;
  }
};

// One of the three parts of dqkv.
template <class T>
std::vector<T> part(const std::vector<T>& dqkv, int64_t columns, int64_t which) {
  std::vector<T> out;
  for (size_t i = 0; i < dqkv.size(); ++i)
    if (static_cast<int64_t>(i) / columns % 3 == which) out.push_back(dqkv[i]);
  return out;
}

void expect_right(const Shape& shape) {
  const Problem p(shape);
  const auto exact = p.reference<double>();
  const auto plain = p.reference<float>();
  const auto ours = p.on_device();
  expect_exact_as_float(ours.out, plain.out, exact.out, "out of " + shape.name());
  const char* names[] = {"dq", "dk", "dv"};
  for (int64_t i = 0; i < 3; ++i)
    expect_exact_as_float(part(ours.dqkv, shape.columns, i), part(plain.dqkv, shape.columns, i),
                          part(exact.dqkv, shape.columns, i), names[i] + (" of " + shape.name()));
}

TEST_F(CudaProjectedAttention, IsAsExactAsTf32AtEveryHeadWidth) {
  for (const int64_t columns : {64, 192})
    for (const int64_t width : {1, 2, 4, 8, 16, 32, 64})
      if (cuda::projected_attention_takes(kTokens, kWidth, columns, columns / width))
        expect_right({.heads = {static_cast<int32_t>(columns / width)}, .columns = columns});
}

TEST_F(CudaProjectedAttention, TakesTrialsOfDifferentHeadsInOneCall) {
  expect_right({.heads = {8, 1, 2, 4, 8, 1}});
  expect_right({.heads = {16, 2, 4}, .columns = 128, .gap = 4});
}

TEST_F(CudaProjectedAttention, TakesAnyNumberOfSequences) {
  for (const int64_t sequences : {1, 8, 9, 70}) expect_right({.heads = {1, 8}, .sequences = sequences});
  EXPECT_TRUE(Problem({.sequences = 0}).on_device().out.empty());
}

TEST_F(CudaProjectedAttention, DoesWithoutABias) { expect_right({.heads = {8, 2}, .biased = false}); }

TEST_F(CudaProjectedAttention, CarriesAFullWidthModel) {
  expect_right({.heads = {64, 512}, .sequences = 2, .columns = 4096});
}

TEST_F(CudaProjectedAttention, ATrialThatDivergedLeavesTheOthersAlone) {
  Problem p({.heads = {8, 8, 1, 1}});
  const auto before = p.on_device();
  const size_t each = p.x.size() / 4;
  for (const size_t bad : {size_t{1}, size_t{3}})
    std::fill_n(p.x.begin() + static_cast<int64_t>(bad * each), each,
                std::numeric_limits<float>::quiet_NaN());
  const auto after = p.on_device();
  for (size_t i = 0; i < after.out.size(); ++i) {
    if (i / (after.out.size() / 4) % 2 == 1)
      ASSERT_TRUE(std::isnan(after.out[i])) << i;
    else
      ASSERT_EQ(after.out[i], before.out[i]) << i;
  }
}

TEST_F(CudaProjectedAttention, GivesATrialTheSameBitsAloneAndStacked) {
  const Problem all({.heads = {8, 1, 8}, .sequences = 20});
  const auto together = all.on_device();
  for (size_t t = 0; t < 3; ++t) {
    Problem one({.heads = {all.shape.heads[t]}, .sequences = 20});
    const auto cut = [&](const std::vector<float>& x) {
      const auto each = static_cast<int64_t>(x.size() / 3), first = static_cast<int64_t>(t) * each;
      return std::vector<float>(x.begin() + first, x.begin() + first + each);
    };
    one.x = cut(all.x);
    one.W = cut(all.W);
    one.b = cut(all.b);
    one.dout = cut(all.dout);
    one.scale[0] = all.scale[t];
    const auto alone = one.on_device();
    EXPECT_EQ(alone.out, cut(together.out));
    EXPECT_EQ(alone.dqkv, cut(together.dqkv));
  }
}

TEST_F(CudaProjectedAttention, RefusesWhatItDoesNotTake) {
  EXPECT_FALSE(cuda::projected_attention_takes(15, 64, 64, 8));
  EXPECT_FALSE(cuda::projected_attention_takes(16, 32, 64, 8));
  EXPECT_FALSE(cuda::projected_attention_takes(16, 64, 32, 4));
  EXPECT_FALSE(cuda::projected_attention_takes(16, 64, 64, 0));
  EXPECT_FALSE(cuda::projected_attention_takes(16, 64, 128, 1));
  const int32_t heads = 7;
  const float scale = 1;
  cuda::ProjectedAttention a;
  a.heads = &heads;
  a.scale = &scale;
  EXPECT_THROW(cuda::projected_attention_forward(a, nullptr, nullptr, nullptr, nullptr, nullptr), Error);
}

}  // namespace
}  // namespace rankscope
