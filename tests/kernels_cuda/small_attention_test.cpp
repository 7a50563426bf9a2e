#include "kernels/small_attention.h"

#include <algorithm>

#include "base/error.h"
#include "device.h"
#include "kernels/cuda/train.h"

namespace rankscope {
namespace {

struct Shape {
  int64_t sequences = 2, queries = 16, keys = 16, width_qk = 64, width_v = 64;
  std::vector<int32_t> heads{8};
  bool hard = false, shared_values = false;
  int64_t gap = 0;  // floats between rows, and again between trials
  std::string name() const {
    std::string text = std::to_string(queries) + "x" + std::to_string(keys) + ", widths " +
                       std::to_string(width_qk) + "/" + std::to_string(width_v) + ", heads";
    for (int32_t h : heads) text += " " + std::to_string(h);
    return text + (hard ? ", hard" : "") + (shared_values ? ", shared" : "") + (gap ? ", gaps" : "");
  }
};

struct Size {
  int64_t trials, rows, width, gap;
  Rows strides() const { return {rows * (width + gap) + gap, width + gap}; }
  int64_t whole() const { return trials * strides().trial; }
};

// A tensor without gaps, laid out with them, and back; the gaps keep what they held.
std::vector<float> spread(const Size& s, const std::vector<float>& dense, float filler) {
  std::vector<float> out(s.whole(), filler);
  for (int64_t t = 0, i = 0; t < s.trials; ++t)
    for (int64_t r = 0; r < s.rows; ++r)
      for (int64_t c = 0; c < s.width; ++c) out[t * s.strides().trial + r * s.strides().row + c] = dense[i++];
  return out;
}
std::vector<float> gather(const Size& s, const std::vector<float>& laid_out) {
  std::vector<float> out;
  std::vector<bool> used(laid_out.size());
  for (int64_t t = 0; t < s.trials; ++t)
    for (int64_t r = 0; r < s.rows; ++r)
      for (int64_t c = 0; c < s.width; ++c) {
        const int64_t at = t * s.strides().trial + r * s.strides().row + c;
        out.push_back(laid_out[at]);
        used[at] = true;
      }
  for (size_t i = 0; i < used.size(); ++i)
    EXPECT_TRUE(used[i] || is_poison(laid_out[i])) << "a gap was written at " << i;
  return out;
}

template <class T>
struct Result {
  std::vector<T> out, dq, dk, dv;
};

// Softmax attention of dense rows, as one writes it down, in the precision T.
template <class T>
Result<T> reference(const Shape& s, const std::vector<float>& scale, const std::vector<float>& q,
                    const std::vector<float>& k, const std::vector<float>& v,
                    const std::vector<float>& dout) {
  const int64_t trials = s.heads.size();
  Result<T> r{std::vector<T>(dout.size()), std::vector<T>(q.size()), std::vector<T>(k.size()),
              std::vector<T>(v.size())};
  for (int64_t t = 0, out_base = 0; t < trials; ++t) {
    const int64_t heads = s.heads[t], w = s.width_qk / heads,
                  wv = s.shared_values ? s.width_v : s.width_v / heads;
    const int64_t out_width = heads * wv;
    for (int64_t b = 0; b < s.sequences; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < s.queries; ++i) {
          const int64_t qi = ((t * s.sequences + b) * s.queries + i) * s.width_qk + h * w;
          const int64_t oi = out_base + (b * s.queries + i) * out_width + h * wv;
          const auto key = [&](int64_t j) {
            return ((t * s.sequences + b) * s.keys + j) * s.width_qk + h * w;
          };
          const auto value = [&](int64_t j) {
            return ((t * s.sequences + b) * s.keys + j) * s.width_v + (s.shared_values ? 0 : h * wv);
          };
          std::vector<T> p(s.keys), dp(s.keys);
          for (int64_t j = 0; j < s.keys; ++j) {
            for (int64_t c = 0; c < w; ++c) p[j] += T(q[qi + c]) * T(k[key(j) + c]);
            for (int64_t c = 0; c < wv; ++c) dp[j] += T(dout[oi + c]) * T(v[value(j) + c]);
            p[j] *= T(scale[t]);
          }
          const auto largest = std::max_element(p.begin(), p.end());
          const int64_t winner = largest - p.begin();
          const T peak = *largest;
          T sum = 0, mean = 0;
          for (T& x : p) sum += x = std::exp(x - peak);
          for (int64_t j = 0; j < s.keys; ++j) {
            p[j] = s.hard ? T(j == winner) : p[j] / sum;
            mean += p[j] * dp[j];
          }
          for (int64_t j = 0; j < s.keys; ++j) {
            const T ds = s.hard ? T(0) : T(scale[t]) * p[j] * (dp[j] - mean);
            for (int64_t c = 0; c < w; ++c) {
              r.dq[qi + c] += ds * T(k[key(j) + c]);
              r.dk[key(j) + c] += ds * T(q[qi + c]);
            }
            for (int64_t c = 0; c < wv; ++c) {
              r.out[oi + c] += p[j] * T(v[value(j) + c]);
              r.dv[value(j) + c] += p[j] * T(dout[oi + c]);
            }
          }
        }
    out_base += s.sequences * s.queries * out_width;
  }
  return r;
}

// All operands of a shape, on the host without gaps and on the device with them.
struct Problem {
  Shape shape;
  Size q_size, k_size, v_size, out_size;
  std::vector<float> scale, q, k, v, dout;
  SmallAttention a;

  Problem(const Shape& s, bool whole_numbers = false) : shape(s) {
    const int64_t trials = s.heads.size();
    const int64_t out_width = s.shared_values ? s.heads[0] * s.width_v : s.width_v;
    q_size = {trials, s.sequences * s.queries, s.width_qk, s.gap};
    k_size = {trials, s.sequences * s.keys, s.width_qk, s.gap};
    v_size = {trials, s.sequences * s.keys, s.width_v, s.gap};
    out_size = {trials, s.sequences * s.queries, out_width, s.gap};
    q = random_floats(trials * q_size.rows * q_size.width, 1);
    k = random_floats(trials * k_size.rows * k_size.width, 2);
    v = random_floats(trials * v_size.rows * v_size.width, 3);
    dout = random_floats(trials * out_size.rows * out_size.width, 4);
    if (whole_numbers)
      for (auto* x : {&q, &k})
        for (float& y : *x) y = std::round(y);
    for (int64_t t = 0; t < trials; ++t)
      scale.push_back(static_cast<float>((1 + 0.25 * t) / std::sqrt(double(s.width_qk) / s.heads[t])));
    a = {trials,           s.sequences,       s.queries,          s.keys,
         s.width_qk,       s.width_v,         shape.heads.data(), scale.data(),
         s.hard,           s.shared_values,   q_size.strides(),   k_size.strides(),
         v_size.strides(), out_size.strides()};
  }

  Result<float> on_device() const {
    const DeviceBuffer<float> dq_(std::vector<float>(q_size.whole(), poison()));
    const DeviceBuffer<float> dk_(std::vector<float>(k_size.whole(), poison()));
    const DeviceBuffer<float> dv_(std::vector<float>(v_size.whole(), poison()));
    const DeviceBuffer<float> out_(std::vector<float>(out_size.whole(), poison()));
    const DeviceBuffer<float> q_(spread(q_size, q, 1e30f)), k_(spread(k_size, k, 1e30f)),
        v_(spread(v_size, v, 1e30f)), dout_(spread(out_size, dout, 1e30f));
    cuda::small_attention_forward(a, q_.data(), k_.data(), v_.data(), out_.data(), nullptr);
    cuda::small_attention_backward(a, q_.data(), k_.data(), v_.data(), dout_.data(), a.out, dq_.data(), a.q,
                                   dk_.data(), a.k, dv_.data(), a.v, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return {gather(out_size, out_.values()), gather(q_size, dq_.values()), gather(k_size, dk_.values()),
            gather(v_size, dv_.values())};
  }
};

void expect_right(const Shape& shape) {
  const Problem p(shape);
  const auto exact = reference<double>(shape, p.scale, p.q, p.k, p.v, p.dout);
  const auto plain = reference<float>(shape, p.scale, p.q, p.k, p.v, p.dout);
  const auto ours = p.on_device();
  expect_exact_as_float(ours.out, plain.out, exact.out, "out of " + shape.name());
  expect_exact_as_float(ours.dq, plain.dq, exact.dq, "dq of " + shape.name());
  expect_exact_as_float(ours.dk, plain.dk, exact.dk, "dk of " + shape.name());
  expect_exact_as_float(ours.dv, plain.dv, exact.dv, "dv of " + shape.name());
}

class CudaSmallAttention : public OnDevice {};

TEST_F(CudaSmallAttention, IsAsExactAsFloatAtEveryHeadWidth) {
  for (int64_t width : {1, 2, 3, 4, 5, 8, 12, 16, 20, 32, 64, 100, 128})
    for (int64_t heads : {1, 3, 8}) {
      Shape s;
      s.sequences = 8;
      s.width_qk = s.width_v = width * heads;
      s.heads = {static_cast<int32_t>(heads)};
      expect_right(s);
    }
}

TEST_F(CudaSmallAttention, IsAsExactAsFloatAtEveryContextLength) {
  for (int64_t n : {1, 3, 17, 100, 256})
    for (int64_t width : {1, 8, 64, 128}) {
      Shape s;
      s.sequences = std::max<int64_t>(1, 64 / n);  // enough numbers for an error that means something
      s.queries = s.keys = n;
      s.width_qk = s.width_v = 2 * width;
      s.heads = {2};
      expect_right(s);
    }
}

TEST_F(CudaSmallAttention, TakesTrialsOfDifferentHeadsInOneCall) {
  Shape s;
  s.heads = {1, 64, 2, 8, 32, 4, 16, 8};
  expect_right(s);
  s.gap = 4;
  expect_right(s);
  s.gap = 3;  // no longer aligned
  expect_right(s);
}

TEST_F(CudaSmallAttention, CutsNoHeadWhereColumnsDoNotFillAWarp) {
  Shape s;
  for (int64_t columns : {24, 40, 48, 72}) {
    s.width_qk = s.width_v = columns;
    s.heads = {static_cast<int32_t>(columns / 8), static_cast<int32_t>(columns / 4),
               static_cast<int32_t>(columns / 2), static_cast<int32_t>(columns)};
    expect_right(s);
  }
}

TEST_F(CudaSmallAttention, CarriesAFullWidthModel) {
  Shape s;
  s.sequences = 1;
  s.width_qk = s.width_v = 4096;
  s.heads = {64, 512, 4096};
  expect_right(s);
}

TEST_F(CudaSmallAttention, TakesQueriesKeysAndValuesOfDifferentSizes) {
  Shape s;
  s.queries = 5;
  s.keys = 9;
  s.width_qk = 6;
  s.width_v = 15;
  s.heads = {3, 1};
  expect_right(s);
}

TEST_F(CudaSmallAttention, SharesValuesBetweenHeads) {
  Shape s;
  s.shared_values = true;
  s.heads = {4, 4};
  s.width_qk = 8;
  s.width_v = 10;
  expect_right(s);
}

TEST_F(CudaSmallAttention, GivesEverythingToTheFirstLargestScore) {
  for (const bool shared : {false, true}) {
    Shape s;
    s.hard = true;
    s.shared_values = shared;
    s.heads = {8};
    s.width_qk = s.width_v = 16;
    const Problem p(s, true);  // whole numbers: ties are exact, and there are many
    const auto exact = reference<double>(s, p.scale, p.q, p.k, p.v, p.dout);
    const auto plain = reference<float>(s, p.scale, p.q, p.k, p.v, p.dout);
    const auto ours = p.on_device();
    EXPECT_EQ(widened(ours.out), exact.out);
    EXPECT_EQ(widened(ours.dq), exact.dq);
    EXPECT_EQ(widened(ours.dk), exact.dk);
    expect_exact_as_float(ours.dv, plain.dv, exact.dv, "dv of " + s.name());
  }
}

TEST_F(CudaSmallAttention, SurvivesScoresThatWouldOverflow) {
  Shape s;
  s.heads = {1, 16, 64};
  Problem p(s);
  for (float& x : p.q) x *= 1e4f;
  for (const float x : p.on_device().out) ASSERT_TRUE(std::isfinite(x));
}

TEST_F(CudaSmallAttention, DoesNothingForAnEmptyBatch) {
  Shape s;
  s.sequences = 0;
  EXPECT_TRUE(Problem(s).on_device().out.empty());
}

TEST_F(CudaSmallAttention, LeavesOutTheValuesGradientOnRequest) {
  Shape s;
  s.heads = {1, 16, 64};
  for (const int64_t keys : {16, 5}) {
    s.queries = s.keys = keys;
    const Problem p(s);
    const DeviceBuffer<float> q(p.q), k(p.k), v(p.v), dout(p.dout), dq(p.q), dk(p.k);
    cuda::small_attention_backward(p.a, q.data(), k.data(), v.data(), dout.data(), p.a.out, dq.data(), p.a.q,
                                   dk.data(), p.a.k, nullptr, Rows{}, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(dq.values(), p.on_device().dq);
    EXPECT_EQ(dk.values(), p.on_device().dk);
  }
}

TEST_F(CudaSmallAttention, GivesATrialTheSameBitsAloneAndStacked) {
  Shape stacked;
  stacked.heads = {8, 64, 1};
  const Problem all(stacked);
  const auto together = all.on_device();
  Shape single = stacked;
  for (size_t t = 0; t < stacked.heads.size(); ++t) {
    single.heads = {stacked.heads[t]};
    Problem one(single);
    const size_t each = one.q.size();
    const auto part = [&](const std::vector<float>& x) {
      return std::vector<float>(x.begin() + t * each, x.begin() + (t + 1) * each);
    };
    one.q = part(all.q);
    one.k = part(all.k);
    one.v = part(all.v);
    one.dout = part(all.dout);
    one.scale[0] = all.scale[t];
    const auto alone = one.on_device();
    EXPECT_EQ(alone.out, part(together.out));
    EXPECT_EQ(alone.dq, part(together.dq));
    EXPECT_EQ(alone.dk, part(together.dk));
    EXPECT_EQ(alone.dv, part(together.dv));
  }
}

TEST_F(CudaSmallAttention, RefusesHeadsThatDoNotDivideTheWidth) {
  Shape s;
  s.heads = {7};
  const std::vector<float> scale{1};
  SmallAttention a;
  a.heads = s.heads.data();
  a.scale = scale.data();
  a.width_qk = a.width_v = 64;
  EXPECT_THROW(cuda::small_attention_forward(a, nullptr, nullptr, nullptr, nullptr, nullptr), Error);
}

}  // namespace
}  // namespace rankscope
