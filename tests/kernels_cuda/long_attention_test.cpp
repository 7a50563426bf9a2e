// Against plain loops in double precision.
#include "kernels/cuda/long_attention.h"

#include "device.h"
#include "kernels/long_attention_reference.h"

namespace rankscope {
namespace {

class CudaLongAttention : public OnDevice {};

LongAnswer answer_of(const LongCase& c, bool statistics = true) {
  LongAnswer answer(c.a);
  const DeviceBuffer<float> q(c.q), k(c.k), v(c.v), sinks(c.sink), out(answer.out),
      rows(std::vector<float>(2 * answer.mass.size(), poison()));
  const DeviceBuffer<double> mass(answer.mass), entropy(answer.entropy), received(answer.received);
  cuda::long_attention(c.a, {q.data(), k.data(), v.data(), c.sinks ? sinks.data() : nullptr},
                       {out.data(), mass.data(), statistics ? entropy.data() : nullptr,
                        statistics ? received.data() : nullptr},
                       rows.data(), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  answer.out = out.values(), answer.mass = mass.values();
  answer.entropy = entropy.values(), answer.received = received.values();
  return answer;
}

TEST_F(CudaLongAttention, IsThatOfPlainLoopsOverOddShapes) {
  for (const LongCase& c : long_cases(true)) {
    ASSERT_TRUE(cuda::long_attention_takes(c.a)) << c.name();
    EXPECT_EQ(fault_of(c, plain_long_attention(c), answer_of(c)), "") << c.name();
  }
}

TEST_F(CudaLongAttention, CarriesTheSameWithAndWithoutStatistics) {
  const LongCase c = filled({1, 100, 100, 2, 1, 2, 12, 20, .3f, true, 0}, true);
  const LongAnswer with = answer_of(c), without = answer_of(c, false);
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.mass, without.mass);
  EXPECT_TRUE(std::isnan(without.entropy[0]) && std::isnan(without.received[0]));  // not written
}

TEST_F(CudaLongAttention, MarksTheRowsThatAreNotFinite) {
  LongCase c = filled({1, 70, 70, 1, 1, 1, 8, 8, .3f, true, 0}, false);
  c.q[40 * 8] = NAN;
  const LongAnswer answer = answer_of(c);
  for (size_t i = 0; i < 70; ++i) EXPECT_EQ(std::isnan(answer.mass[i]), i == 40) << i;
}

TEST_F(CudaLongAttention, LeavesWideAndUnevenHeadsToOthers) {
  EXPECT_TRUE(cuda::long_attention_takes({1, 600, 600, 1, 1, 1, 128, 128}));
  EXPECT_FALSE(cuda::long_attention_takes({1, 600, 600, 1, 1, 1, 132, 64}));
  EXPECT_FALSE(cuda::long_attention_takes({1, 600, 600, 1, 1, 1, 64, 66}));
}

}  // namespace
}  // namespace rankscope
