// Attention without its matrix beside plain loops, for every instruction set of this machine.
#include <gtest/gtest.h>

#include "kernels/long_attention_reference.h"
#include "kernels/support.h"

namespace rankscope {
namespace {

LongAnswer answer_of(const LongCase& c, Isa isa, bool statistics = true) {
  LongAnswer answer(c.a);
  const LongResults to{answer.out.data(), answer.mass.data(), statistics ? answer.entropy.data() : nullptr,
                       statistics ? answer.received.data() : nullptr};
  for (int64_t s = 0; s < c.a.samples; ++s)
    for (int64_t h = 0; h < c.a.heads; ++h)
      for (int64_t g = 0; g < long_segments(c.a); ++g)
        simd::table_of(isa).long_attention(c.a, c.operands(), to, s, h, g);
  return answer;
}

TEST(LongAttention, IsThatOfPlainLoopsOverOddShapes) {
  for (const LongCase& c : long_cases(false)) {
    const LongSums exact = plain_long_attention(c);
    for (const Isa isa : available_isas())
      EXPECT_EQ(fault_of(c, exact, answer_of(c, isa)), "") << isa_name(isa) << ", " << c.name();
  }
}

TEST(LongAttention, CarriesTheSameWithAndWithoutStatistics) {
  const LongCase c = filled({1, 100, 100, 2, 1, 2, 12, 20, .3f, true, 0}, true);
  for (const Isa isa : available_isas()) {
    const LongAnswer with = answer_of(c, isa), without = answer_of(c, isa, false);
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(with.mass, without.mass);
    EXPECT_TRUE(std::isnan(without.entropy[0]) && std::isnan(without.received[0]));  // not written
  }
}

// A query that is no number spoils its own row and no other; a key that is none spoils the rows that see it.
TEST(LongAttention, MarksTheRowsThatAreNotFinite) {
  LongCase c = filled({1, 70, 70, 1, 1, 1, 8, 8, .3f, true, 0}, false);
  c.q[40 * 8] = NAN;
  LongCase d = filled(c.a, false);
  d.k[40 * 8 + 3] = INFINITY;
  for (const Isa isa : available_isas()) {
    const LongAnswer by_query = answer_of(c, isa), by_key = answer_of(d, isa);
    for (int64_t i = 0; i < 70; ++i) {
      EXPECT_EQ(std::isnan(by_query.mass[static_cast<size_t>(i)]), i == 40) << i;
      // A product with an infinite key is -inf, which is no fault, or +inf or NaN, which are.
      const bool sees_infinity = i >= 40 && d.q[static_cast<size_t>(i * 8 + 3)] > 0;
      EXPECT_EQ(std::isnan(by_key.mass[static_cast<size_t>(i)]), sees_infinity) << i;
    }
  }
}

}  // namespace
}  // namespace rankscope
