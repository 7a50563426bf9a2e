// A dose of sink, and the same mass moved elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "attention/patterns.h"

namespace rankscope::test {
namespace {

constexpr int64_t T = 12;
// Softmax of T scores of a few units: T entries, each rounded when it is made and when it is added.
constexpr double kRounding = 8 * T * 0x1p-53;

class Shifted : public testing::TestWithParam<bool> {
 protected:
  Shifted() {
    at::manual_seed(3);
    scores = normals(T, T);
  }
  at::Tensor of(const std::string& variant) { return pattern_of({variant, 1.0, GetParam()}, scores); }
  at::Tensor control(double nats, const std::string& to) {
    return of("shifted_control:nats=" + std::to_string(nats) + ",to=" + to);
  }
  static at::Tensor taken(const at::Tensor& from, const at::Tensor& to) {
    return (from - to).clamp_min(0).sum(1);
  }
  at::Tensor scores;
};

TEST_P(Shifted, ADoseChangesTheOddsOfTheFirstKeyAndNoOthers) {
  for (const double nats : {-3.0, 0.5, 4.0}) {
    const at::Tensor p = of("softmax"), s = of("shifted_sink:nats=" + std::to_string(nats));
    for (int64_t i = 1; i < T; ++i) {
      const auto odds = [&](const at::Tensor& x, int64_t a, int64_t b) {
        return std::log(x[i][a].item<double>() / x[i][b].item<double>());
      };
      EXPECT_NEAR(odds(s, 0, i) - odds(p, 0, i), nats, 1e-13) << i;
      EXPECT_NEAR(odds(s, 1, i), odds(p, 1, i), 1e-13) << i;
    }
    EXPECT_LT(largest(s.sum(1) - 1), kRounding);
  }
}

TEST_P(Shifted, NoDoseIsSoftmax) {
  EXPECT_EQ(largest(of("shifted_sink:nats=0") - of("softmax")), 0.0);
  for (const char* to : {"nothing", "uniform", "random"})
    EXPECT_LT(largest(control(0, to) - of("softmax")), kRounding) << to;
}

TEST_P(Shifted, ControlsTakeTheSameMassFromTheSameKeys) {
  for (const double nats : {-2.0, 2.0}) {
    const at::Tensor p = of("softmax"), s = of("shifted_sink:nats=" + std::to_string(nats));
    const at::Tensor left = control(nats, "nothing");
    EXPECT_GT(largest(taken(p, s)), 0.05) << "nothing moves: the test is blind";
    EXPECT_LT(largest(taken(p, left) - taken(p, s)), kRounding);
    EXPECT_LT(largest(taken(left, p)), kRounding);  // nothing is given
    EXPECT_LT(largest(at::minimum(p, s) - left), kRounding);
    for (const char* to : {"uniform", "random"}) {
      const at::Tensor c = control(nats, to);
      EXPECT_LT(largest(c.sum(1) - 1), kRounding) << to;
      EXPECT_LT(largest((c - left).sum(1) - taken(p, s)), kRounding) << to;
    }
  }
}

TEST_P(Shifted, GivesEvenlyToWhatAQuerySeesOrAllToOneKeyThatIsNotTheFirst) {
  const at::Tensor left = control(2, "nothing"), evenly = control(2, "uniform") - left,
                   random = control(2, "random") - left;
  std::set<int64_t> drawn;
  for (int64_t i = 1; i < T; ++i) {
    const int64_t seen = GetParam() ? i + 1 : T;
    const at::Tensor row = evenly[i].narrow(0, 0, seen);
    EXPECT_LT(largest(row - row[0]), kRounding);
    if (seen < T) {
      EXPECT_EQ(largest(evenly[i].narrow(0, seen, T - seen)), 0.0);
      EXPECT_EQ(largest(random[i].narrow(0, seen, T - seen)), 0.0);
    }
    EXPECT_EQ((random[i].abs() > kRounding).sum().item<int64_t>(), 1) << i;
    drawn.insert(random[i].argmax().item<int64_t>());
  }
  EXPECT_FALSE(drawn.contains(0));
  EXPECT_GT(drawn.size(), 3u);  // not always the same one
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAMask, Shifted, testing::Bool(),
                         [](const auto& causal) { return causal.param ? "causal" : "all"; });

}  // namespace
}  // namespace rankscope::test
