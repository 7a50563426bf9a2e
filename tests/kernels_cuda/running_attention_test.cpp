// Against the CPU's kernels in double precision.
#include "kernels/cuda/running_attention.h"

#include "device.h"
#include "kernels/cpu/running_attention.h"

namespace rankscope {
namespace {

class CudaRunningAttention : public OnDevice {};

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Numbers between 0 and 1 of which one is 0, where there are several.
Floats gates(int64_t count, uint64_t seed, float shift) {
  Floats x = random_floats(count, seed);
  for (float& g : x) g = 1 / (1 + std::exp(-g - shift));
  if (count > 3) x[3] = 0;
  return x;
}

Floats times(Floats x, double factor) {
  for (float& y : x) y = static_cast<float>(y * factor);
  return x;
}

// In units of 2^-24. A product of float32 numbers is three of TF32, which leave out 2^-22 of it, and numbers
// pass through up to five products one behind another: 20. Tensor cores add eight terms at once and cut the
// sum off, by up to 2^-23 of it: a quarter for each of the `terms` of the longest sum. Where factors are
// rounded to TF32, 2^-11 each, that comes on top.
void expect_near(const Floats& ours, const Doubles& exact, int64_t terms, bool tf32, const char* what) {
  double most = 0, off = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_FALSE(is_poison(ours[i])) << what << " " << i;
    most = std::max(most, std::fabs(exact[i]));
    off = std::max(off, std::fabs(ours[i] - exact[i]));
  }
  const double roundings = 20 + 0.25 * static_cast<double>(terms);
  EXPECT_LE(off, (roundings * 0x1p-24 + (tf32 ? 0x1p-8 : 0)) * most) << what << (tf32 ? " tf32" : "");
}

// The monomials of degree 2: 1, x_a, x_a x_b (x_a^2 / sqrt 2).
struct Table {
  std::vector<int32_t> parent{0}, channel{-1};
  Doubles factor{1};
  std::vector<uint32_t> packed{kNoChannel << 16 | kNoChannel << 8 | kNoChannel};
  explicit Table(int32_t width) {
    for (int32_t c = 0; c < width; ++c) add(0, c, 1, kNoChannel);
    for (int32_t a = 0; a < width; ++a)
      for (int32_t b = a; b < width; ++b)
        add(1 + a, b, a == b ? std::sqrt(0.5) : 1.0, static_cast<uint32_t>(a));
  }

 private:
  void add(int32_t from, int32_t by, double times, uint32_t other) {
    parent.push_back(from);
    channel.push_back(by);
    factor.push_back(times);
    packed.push_back(kNoChannel << 16 | other << 8 | static_cast<uint32_t>(by));
  }
};

struct Size {
  int64_t sequences, tokens, d, e;
};
// Heads of 64 have kernels of their own from 64 tokens on.
constexpr Size kLinear[] = {{2, 1, 3, 4},    {3, 64, 16, 16}, {2, 150, 5, 7},  {1, 130, 70, 66},
                            {2, 257, 12, 9}, {2, 63, 64, 64}, {2, 64, 64, 64}, {3, 200, 64, 64}};
constexpr Size kDelta[] = {{2, 1, 3, 4},      {3, 64, 16, 16}, {2, 150, 5, 7},  {1, 130, 70, 66},
                           {2, 257, 128, 33}, {2, 63, 64, 64}, {2, 64, 64, 64}, {3, 200, 64, 64}};

TEST_F(CudaRunningAttention, LinearAttentionIsTheCpusInDoublePrecision) {
  for (const Size s : kLinear)
    for (const int degree : {0, 2})
      for (const bool forgets : {false, true})
        for (const bool tf32 : {false, true}) {
          const Table table(static_cast<int32_t>(s.d));
          const DeviceBuffer<uint32_t> packed(table.packed);
          const DeviceBuffer<float> factor(Floats(table.factor.begin(), table.factor.end()));
          LinearAttention host{s.tokens, s.d, s.e, degree};
          host.monomials = {static_cast<int64_t>(table.parent.size()), table.parent.data(),
                            table.channel.data(), table.factor.data()};
          LinearAttention there = host;
          there.packed = {packed.data(), factor.data()};

          const int64_t rows = s.sequences * s.tokens;
          const double spread = 1 / std::sqrt(static_cast<double>(s.d));
          const Floats q = times(random_floats(rows * s.d, 1), spread),
                       k = times(random_floats(rows * s.d, 2), spread), v = random_floats(rows * s.e, 3),
                       keep = gates(rows, 4, 2), dout = random_floats(rows * s.e, 5);
          const DeviceBuffer<float> dq_(Floats(q.size(), poison())), dk_(Floats(k.size(), poison())),
              dv_(Floats(v.size(), poison())), out_(Floats(v.size(), poison())), q_(q), k_(k), v_(v),
              keep_(keep), dout_(dout);
          const DeviceBuffer<float> work(Floats(cuda::linear_attention_workspace(there, s.sequences, true)));
          const float* kept = forgets ? keep_.data() : nullptr;
          cuda::linear_attention_forward(there, s.sequences, tf32, q_.data(), k_.data(), v_.data(), kept,
                                         out_.data(), work.data(), nullptr);
          cuda::linear_attention_backward(there, s.sequences, tf32, q_.data(), k_.data(), v_.data(), kept,
                                          dout_.data(), dq_.data(), dk_.data(), dv_.data(), work.data(),
                                          nullptr);

          const Doubles wq = widened(q), wk = widened(k), wv = widened(v), ww = widened(keep),
                        wd = widened(dout);
          Doubles out(wv.size()), dq(wq.size()), dk(wk.size()), dv(wv.size());
          for (int64_t b = 0; b < s.sequences; ++b) {
            const int64_t x = b * s.tokens * s.d, y = b * s.tokens * s.e;
            const double* own = forgets ? ww.data() + b * s.tokens : nullptr;
            linear_attention_forward<double>(host, &wq[x], &wk[x], &wv[y], own, &out[y]);
            linear_attention_backward<double>(host, &wq[x], &wk[x], &wv[y], own, &wd[y], &dq[x], &dk[x],
                                              &dv[y]);
          }
          SCOPED_TRACE(testing::Message() << s.tokens << " tokens of " << s.d << ", degree " << degree
                                          << (forgets ? ", forgets" : ""));
          const int64_t terms = s.tokens + (degree == 0 ? s.d : host.monomials.count);
          expect_near(out_.values(), out, terms, tf32, "out");
          expect_near(dq_.values(), dq, terms, tf32, "dq");
          expect_near(dk_.values(), dk, terms, tf32, "dk");
          expect_near(dv_.values(), dv, terms, tf32, "dv");
        }
}

TEST_F(CudaRunningAttention, TheDeltaRuleIsTheCpusInDoublePrecision) {
  for (const Size s : kDelta)
    for (const bool forgets : {false, true})
      for (const bool tf32 : {false, true}) {
        const DeltaAttention a{s.tokens, s.d, s.e};
        const int64_t rows = s.sequences * s.tokens;
        Floats k = random_floats(rows * s.d, 2);
        for (int64_t i = 0; i < rows; ++i) {  // keys of length one
          double length = 0;
          for (int64_t x = 0; x < s.d; ++x) length += double{k[i * s.d + x]} * k[i * s.d + x];
          for (int64_t x = 0; x < s.d; ++x)
            k[i * s.d + x] = static_cast<float>(k[i * s.d + x] / std::sqrt(length));
        }
        const Floats q = random_floats(rows * s.d, 1), v = random_floats(rows * s.e, 3),
                     write = gates(rows, 6, 0), keep = gates(rows, 4, 2), dout = random_floats(rows * s.e, 5);
        const DeviceBuffer<float> q_(q), k_(k), v_(v), write_(write), keep_(keep), dout_(dout),
            out_(Floats(v.size(), poison())), dq_(Floats(q.size(), poison())),
            dk_(Floats(k.size(), poison())), dv_(Floats(v.size(), poison())), dwrite_(Floats(rows, poison())),
            dkeep_(Floats(rows, poison()));
        const DeviceBuffer<float> saved(Floats(cuda::delta_attention_saved(a, s.sequences))),
            work(Floats(cuda::delta_attention_workspace(a, s.sequences)));
        const DeltaInputs<float> in{q_.data(), k_.data(), v_.data(), write_.data(),
                                    forgets ? keep_.data() : nullptr};
        cuda::delta_attention_forward(a, s.sequences, tf32, in, out_.data(), saved.data(), nullptr);
        cuda::delta_attention_backward(
            a, s.sequences, tf32, in, saved.data(), dout_.data(),
            {dq_.data(), dk_.data(), dv_.data(), dwrite_.data(), forgets ? dkeep_.data() : nullptr},
            work.data(), nullptr);

        const Doubles wq = widened(q), wk = widened(k), wv = widened(v), ww = widened(write),
                      wf = widened(keep), wd = widened(dout);
        Doubles out(wv.size()), dq(wq.size()), dk(wk.size()), dv(wv.size()), dwrite(rows), dkeep(rows),
            states(running_chunks(s.tokens) * s.d * s.e);
        for (int64_t b = 0; b < s.sequences; ++b) {
          const int64_t x = b * s.tokens * s.d, y = b * s.tokens * s.e, t = b * s.tokens;
          const DeltaInputs<double> own{&wq[x], &wk[x], &wv[y], &ww[t], forgets ? &wf[t] : nullptr};
          delta_attention_forward<double>(a, own, &out[y], states.data());
          delta_attention_backward<double>(
              a, own, states.data(), &wd[y],
              {&dq[x], &dk[x], &dv[y], &dwrite[t], forgets ? &dkeep[t] : nullptr});
        }
        SCOPED_TRACE(testing::Message() << s.tokens << " tokens of " << s.d << (forgets ? ", forgets" : ""));
        expect_near(out_.values(), out, s.tokens + s.d, tf32, "out");
        expect_near(dq_.values(), dq, s.tokens + s.d, tf32, "dq");
        expect_near(dk_.values(), dk, s.tokens + s.d, tf32, "dk");
        expect_near(dv_.values(), dv, s.tokens + s.d, tf32, "dv");
        expect_near(dwrite_.values(), dwrite, s.tokens + s.d, tf32, "dwrite");
        if (forgets) expect_near(dkeep_.values(), dkeep, s.tokens + s.d, tf32, "dkeep");
      }
}

}  // namespace
}  // namespace rankscope
