// AdamW beside its formula in double precision.
#include "kernels/cpu/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/support.h"

namespace rankscope {
namespace {

struct State {
  std::vector<float> parameter, m, v;
};

State start(int64_t count) {
  State s{rounded<float>(random_normals(0, count)), rounded<float>(random_normals(1, count)), {}};
  for (const double x : random_normals(2, count)) s.v.push_back(static_cast<float>(x * x));
  return s;
}

void update(Isa isa, const AdamW& rule, float lr, int64_t step, const std::vector<float>& g, State& s,
            int64_t first, int64_t count) {
  simd::table_of(isa).adamw_update(adamw_step(rule, lr, step), count, g.data() + first,
                                   s.parameter.data() + first, s.m.data() + first, s.v.data() + first);
}

TEST(AdamW, IsTheFormulaToAFewRoundings) {
  const AdamW rule{0.9f, 0.999f, 1e-8f, 0.1f};
  const float lr = 0.01f;
  for (const int64_t count : {1, 63, 64, 65, 1000})
    for (const int64_t step : {1, 2, 1000})
      for (const Isa isa : available_isas()) {
        const std::vector<float> g = rounded<float>(random_normals(3, count));
        const State before = start(count);
        State after = before;
        update(isa, rule, lr, step, g, after, 0, count);
        const double t = static_cast<double>(step), epsilon = std::numeric_limits<float>::epsilon();
        for (size_t i = 0; i < g.size(); ++i) {
          const double b1 = rule.beta1, b2 = rule.beta2, grad = g[i];
          const double m = b1 * before.m[i] + (1 - b1) * grad, v = b2 * before.v[i] + (1 - b2) * grad * grad;
          const double rate = lr * (1 / (1 - std::pow(b1, t))) /
                              (std::sqrt(v / (1 - std::pow(b2, t))) + double{rule.epsilon});
          const double kept = before.parameter[i] * (1 - double{lr} * rule.weight_decay);
          // m: two products and a sum, each rounded to half an epsilon of its terms; v likewise, all
          // positive; the step inherits m's error and adds seven roundings of its own (rate, root, product,
          // sum, two more).
          const double m_error = 1.5 * epsilon * (std::fabs(b1 * before.m[i]) + std::fabs((1 - b1) * grad));
          EXPECT_NEAR(after.m[i], m, m_error);
          EXPECT_NEAR(after.v[i], v, 2.5 * epsilon * v);
          EXPECT_NEAR(after.parameter[i], kept - rate * m,
                      rate * (m_error + 4 * epsilon * std::fabs(m)) +
                          1.5 * epsilon * (std::fabs(kept) + std::fabs(rate * m)));
        }
      }
}

TEST(AdamW, AParameterDoesNotDependOnItsPlaceInTheBuffer) {
  const AdamW rule{0.9f, 0.99f, 1e-8f, 0.01f};
  const int64_t count = 1001;
  const std::vector<float> g = rounded<float>(random_normals(3, count));
  for (const Isa isa : available_isas()) {
    State whole = start(count);
    update(isa, rule, 0.01f, 3, g, whole, 0, count);
    for (const int64_t piece : {1, 7, 64, 100}) {
      State parts = start(count);
      for (int64_t at = 0; at < count; at += piece)
        update(isa, rule, 0.01f, 3, g, parts, at, std::min(piece, count - at));
      EXPECT_EQ(parts.parameter, whole.parameter);
      EXPECT_EQ(parts.m, whole.m);
      EXPECT_EQ(parts.v, whole.v);
    }
  }
}

TEST(AdamW, ThePublicCallTakesTheChosenSetAndAnEmptyBufferIsFine) {
  const AdamW rule{};
  const int64_t count = 100;
  const std::vector<float> g = rounded<float>(random_normals(3, count));
  State a = start(count), b = a;
  adamw_update(rule, 0.1f, 5, count, g.data(), a.parameter.data(), a.m.data(), a.v.data());
  update(chosen_isa(), rule, 0.1f, 5, g, b, 0, count);
  EXPECT_EQ(a.parameter, b.parameter);
  adamw_update(rule, 0.1f, 5, 0, nullptr, nullptr, nullptr, nullptr);
}

TEST(AdamW, TheFirstStepMovesByTheLearningRate) {
  // Known answer: from zero moments the first step is lr * sign(g), whatever g's size.
  std::vector<float> p(3, 0.0f), m(3, 0.0f), v(3, 0.0f);
  const std::vector<float> g = {1e-3f, -5.0f, 1e3f};
  adamw_update({}, 0.25f, 1, 3, g.data(), p.data(), m.data(), v.data());
  EXPECT_NEAR(p[0], -0.25f, 0.25f * 2e-5);  // epsilon is a hundred-thousandth of g here
  EXPECT_NEAR(p[1], 0.25f, 0.25f * 1e-6);
  EXPECT_NEAR(p[2], -0.25f, 0.25f * 1e-6);
}

}  // namespace
}  // namespace rankscope
