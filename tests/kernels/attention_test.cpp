// Small-context attention beside its formula, for every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/attention_reference.h"
#include "kernels/cpu/small_attention.h"

namespace rankscope {
namespace {

constexpr float untouched = -77;

/// Odd shapes on purpose: one token, one column, head counts that leave lanes empty, more keys than queries,
/// ranks that differ between trials, rows with gaps.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> list = {
      {{1}, 1, 1, 1, 1, 1},
      {{1}, 2, 1, 7, 3, 5},
      {{8}, 2, 16, 16, 8, 8, false, false, 3},
      {{64}, 3, 16, 16, 64, 64},
      {{13}, 2, 5, 9, 13, 13, false, false, 1},
      {{32}, 2, 7, 16, 64, 64, false, false, 2},
      {{21}, 1, 4, 3, 84, 84, false, false, 5},
      {{11}, 2, 6, 6, 33, 77},     // widths 3 and 7: no code of their own
      {{16}, 1, 16, 16, 16, 128},  // narrow scores, wide values
      {{8}, 2, 16, 16, 64, 64, false, false, 7},
      {{3}, 1, 19, 33, 27, 36, false, false, 1},
      {{1}, 1, 40, 17, 128, 128},
      {{2}, 1, 256, 256, 10, 6},
      {{16, 4, 1, 2}, 2, 6, 5, 16, 16, false, false, 4},  // ranks differ
      {{4, 1, 3}, 2, 5, 6, 12, 10, false, true, 2},       // shared values
      {{64}, 1, 3, 4, 64, 4, false, true},
  };
  for (int i = 0; i < 24; ++i) {
    const Philox random{5, static_cast<uint32_t>(i), 0};
    const auto pick = [&](uint64_t index, int64_t least, uint64_t range) {
      return least + static_cast<int64_t>(random.below(range, index));
    };
    const auto heads = static_cast<int32_t>(pick(0, 1, 40));
    list.push_back({{heads},
                    pick(1, 1, 3),
                    pick(2, 1, 20),
                    pick(3, 1, 20),
                    heads * pick(4, 1, 11),
                    heads * pick(5, 1, 11),
                    false,
                    false,
                    pick(6, 0, 4)});
  }
  return list;
}

std::string describe(const AttentionCase& c, Isa isa) {
  return std::string(isa_name(isa)) + ", heads " + std::to_string(c.heads[0]) + ", queries " +
         std::to_string(c.a.queries) + ", keys " + std::to_string(c.a.keys) + ", widths " +
         std::to_string(c.a.width_qk) + " and " + std::to_string(c.a.width_v);
}

template <class T>
void expect_as_plain() {
  for (const AttentionCase& c : cases()) {
    const AttentionOperands<T> x = rounded<T>(random_operands(c));
    const AttentionResults<long double> exact = plain_attention<long double>(c, widened(x), untouched);
    const AttentionResults<T> plain = plain_attention<T>(c, x, untouched);
    // A score is off by a few roundings of its size (below 16 here), and a weight by that times itself.
    const int64_t depth = 16;
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(describe(c, isa));
      const AttentionResults<T> ours = kernel_attention<T>(isa, c, x, untouched);
      EXPECT_LE(largest_difference(ours.out, exact.out), tolerance(plain.out, exact.out, depth));
      EXPECT_LE(largest_difference(ours.dq, exact.dq), tolerance(plain.dq, exact.dq, depth));
      EXPECT_LE(largest_difference(ours.dk, exact.dk), tolerance(plain.dk, exact.dk, depth));
      EXPECT_LE(largest_difference(ours.dv, exact.dv), tolerance(plain.dv, exact.dv, depth));
    }
  }
}

TEST(SmallAttention, FloatsAreAsExactAsThePlainFormula) { expect_as_plain<float>(); }
TEST(SmallAttention, DoublesAreAsExactAsThePlainFormula) { expect_as_plain<double>(); }

TEST(SmallAttention, RoundsNoWorseThanThePlainFormulaOverAll) {
  for (const Isa isa : available_isas()) {
    double plain_error = 0, error = 0;
    for (const AttentionCase& c : cases()) {
      const AttentionOperands<float> x = rounded<float>(random_operands(c));
      const AttentionResults<long double> exact = plain_attention<long double>(c, widened(x), untouched);
      const AttentionResults<float> plain = plain_attention<float>(c, x, untouched),
                                    ours = kernel_attention<float>(isa, c, x, untouched);
      plain_error += largest_difference(plain.out, exact.out) + largest_difference(plain.dk, exact.dk);
      error += largest_difference(ours.out, exact.out) + largest_difference(ours.dk, exact.dk);
    }
    EXPECT_LE(error, 2 * plain_error) << isa_name(isa);
  }
}

TEST(SmallAttention, GradientsAreFiniteDifferences) {
  for (const AttentionCase& c :
       {AttentionCase{{3}, 2, 3, 4, 9, 6}, AttentionCase{{16}, 1, 3, 5, 16, 16},
        AttentionCase{{2}, 1, 4, 3, 20, 18}, AttentionCase{{2}, 1, 3, 4, 4, 5, false, true}})
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(describe(c, isa));
      AttentionOperands<double> x = random_operands(c);
      const AttentionResults<double> r = kernel_attention<double>(isa, c, x, untouched);
      const auto objective = [&] {
        const std::vector<double> out = kernel_attention<double>(isa, c, x, untouched).out;
        double sum = 0;
        for (size_t i = 0; i < out.size(); ++i) sum += out[i] * x.d_out[i];
        return sum;
      };
      const auto check = [&](std::vector<double>& operand, const std::vector<double>& gradient) {
        // The objective is about 100 at most: h^2 and 100 epsilon / h are both below 1e-8.
        const double h = 1e-5;
        for (size_t i = 0; i < operand.size(); ++i) {
          const double kept = operand[i];
          operand[i] = kept + h;
          const double up = objective();
          operand[i] = kept - h;
          const double down = objective();
          operand[i] = kept;
          EXPECT_NEAR(gradient[i], (up - down) / (2 * h), 1e-8);
        }
      };
      check(x.q, r.dq), check(x.k, r.dk), check(x.v, r.dv);
    }
}

TEST(SmallAttention, AHardChoiceTakesTheFirstLargestScore) {
  // Eighths: every score is exact, and many are equal.
  for (AttentionCase c :
       {AttentionCase{{16}, 2, 6, 9, 32, 16, true, false, 1}, AttentionCase{{3}, 2, 18, 9, 6, 27, true},
        AttentionCase{{2}, 1, 3, 4, 4, 5, true, true}, AttentionCase{{21}, 1, 1, 5, 21, 63, true}}) {
    std::fill(c.scale.begin(), c.scale.end(), 0.5f);
    AttentionOperands<double> x = random_operands(c);
    for (std::vector<double>* operand : {&x.q, &x.k, &x.v, &x.d_out})
      for (double& e : *operand) e = std::round(2 * e) / 8;
    const AttentionResults<float> plain = plain_attention<float>(c, rounded<float>(x), untouched);
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(describe(c, isa));
      const AttentionResults<float> ours = kernel_attention<float>(isa, c, rounded<float>(x), untouched);
      EXPECT_EQ(ours.out, plain.out);
      EXPECT_EQ(ours.dv, plain.dv);
      EXPECT_EQ(ours.dq, plain.dq);
      EXPECT_EQ(ours.dk, plain.dk);
    }
  }
}

TEST(SmallAttention, ASequenceAndATrialGiveTheSameBitsAloneAndInCompany) {
  for (const Isa isa : available_isas()) {
    const AttentionCase whole{{16, 4, 2}, 3, 5, 6, 16, 16, false, false, 1};
    const AttentionOperands<float> x = rounded<float>(random_operands(whole));
    const AttentionResults<float> together = kernel_attention<float>(isa, whole, x, untouched);
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t s = 0; s < 3; ++s) {
        AttentionCase one{{whole.heads[static_cast<size_t>(t)]}, 1, 5, 6, 16, 16, false, false, 1};
        one.scale = {whole.scale[static_cast<size_t>(t)]};
        one.point();
        const auto part = [&](const std::vector<float>& from, Rows rows) {
          const int64_t size = rows.trial / 3, at = t * rows.trial + s * size;
          return std::vector<float>(from.begin() + at, from.begin() + at + size);
        };
        const AttentionResults<float> alone = kernel_attention<float>(
            isa, one,
            {part(x.q, whole.a.q), part(x.k, whole.a.k), part(x.v, whole.a.v), part(x.d_out, whole.a.out)},
            untouched);
        EXPECT_EQ(alone.out, part(together.out, whole.a.out));
        EXPECT_EQ(alone.dq, part(together.dq, whole.a.q));
        EXPECT_EQ(alone.dk, part(together.dk, whole.a.k));
        EXPECT_EQ(alone.dv, part(together.dv, whole.a.v));
      }
  }
}

TEST(SmallAttention, HugeScoresStayFiniteAndANaNIsNotHidden) {
  for (const Isa isa : available_isas())
    for (AttentionCase c : {AttentionCase{{16}, 1, 4, 5, 16, 16}, AttentionCase{{1}, 1, 4, 5, 16, 16}}) {
      SCOPED_TRACE(describe(c, isa));
      c.scale = {1e6f};
      AttentionOperands<float> x = rounded<float>(random_operands(c));
      const AttentionResults<float> huge = kernel_attention<float>(isa, c, x, untouched);
      EXPECT_LE(largest(huge.out), largest(x.v));
      EXPECT_TRUE(std::isfinite(largest(huge.dq)) && std::isfinite(largest(huge.dk)));
      x.q[0] = std::numeric_limits<float>::quiet_NaN();
      const AttentionResults<float> broken = kernel_attention<float>(isa, c, x, untouched);
      EXPECT_TRUE(std::isnan(broken.out[0]));
      EXPECT_TRUE(std::isnan(broken.dk[0]));
    }
}

TEST(SmallAttention, NothingInGivesNothingOut) {
  for (const Isa isa : available_isas()) {
    for (const AttentionCase& c : {AttentionCase{{}, 2, 3, 4, 8, 8}, AttentionCase{{8}, 0, 3, 4, 8, 8}})
      EXPECT_TRUE(kernel_attention<float>(isa, c, rounded<float>(random_operands(c)), untouched).out.empty());
    const AttentionCase no_queries{{8}, 2, 0, 4, 8, 8};
    const AttentionResults<float> r =
        kernel_attention<float>(isa, no_queries, rounded<float>(random_operands(no_queries)), untouched);
    EXPECT_EQ(largest(r.dk), 0) << "without a query no key has a gradient";
    EXPECT_EQ(largest(r.dv), 0);
  }
}

TEST(SmallAttention, GradientsHaveTheirOwnRowsAndValuesMayDoWithout) {
  for (const AttentionCase& c : {AttentionCase{{8}, 2, 3, 4, 16, 16}, AttentionCase{{2}, 2, 3, 4, 16, 16}}) {
    const AttentionOperands<float> x = rounded<float>(random_operands(c));
    const AttentionResults<float> expected = kernel_attention<float>(chosen_isa(), c, x, untouched);
    std::vector<float> out(expected.out.size());
    small_attention_forward(c.a, x.q.data(), x.k.data(), x.v.data(), out.data());
    EXPECT_EQ(out, expected.out);
    // The keys' gradients stand behind those of the queries, as slices of one projection.
    const int64_t row = 16 + 16 + 1;
    std::vector<float> both(static_cast<size_t>(2 * 4 * row), untouched), queries(expected.dq.size());
    small_attention_backward<float>(c.a, x.q.data(), x.k.data(), x.v.data(), x.d_out.data(), c.a.out,
                                    queries.data(), c.a.q, both.data() + 16, {0, row}, nullptr, {});
    EXPECT_EQ(queries, expected.dq);
    for (int64_t token = 0; token < 2 * 4; ++token)
      for (int64_t column = 0; column < row; ++column) {
        const bool mine = column >= 16 && column < 32;
        EXPECT_EQ(both[static_cast<size_t>(token * row + column)],
                  mine ? expected.dk[static_cast<size_t>(token * 16 + column - 16)] : untouched);
      }
  }
}

}  // namespace
}  // namespace rankscope
