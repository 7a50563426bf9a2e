#include "theory/certificate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/test_support.h"
#include "theory/choice_bound.h"
#include "theory/harmonics.h"
#include "theory/independent_energies.h"
#include "theory/limits.h"
#include "theory/lower_bound.h"
#include "theory/vote.h"

namespace rankscope {
namespace {

using test::error_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Certificate, GathersWhatIsKnownOfTwoPoints) {
  const Certificate c = certify({.d = 64, .rank = 8, .heads = 64});
  EXPECT_EQ(c.lower_bound, lower_bound(64, 8, 64));
  EXPECT_EQ(c.plateau, plateau(64));
  EXPECT_EQ(c.vote_error, vote_error(64, 64));
  EXPECT_EQ(c.no_selection_floor, 0.5);
  EXPECT_EQ(c.temperature_coefficient, nearest_temperature_coefficient(64, 2));
  EXPECT_EQ(c.eta.size(), 5u);
  EXPECT_FALSE(c.full_rank);
  ASSERT_EQ(c.heads_needed.size(), 4u);
  EXPECT_EQ(c.heads_needed[3].error, 0.01);
  EXPECT_EQ(c.heads_needed[3].log10_heads, LowerBound(64, 8).log10_heads_for(0.01));
}

TEST(Certificate, BoundsTheChoiceAmongManyPointsAndSaysHowExactly) {
  const Certificate many = certify({.d = 64, .rank = 8, .heads = 8, .n = 16});
  const ChoiceBound bound(64, 8, choice_energies(64, 16));
  EXPECT_EQ(many.lower_bound, bound.at(8));
  EXPECT_EQ(many.bound_error, bound.error_bar(8));
  EXPECT_EQ(many.plateau, bound.plateau());
  EXPECT_FALSE(many.vote_error);
  EXPECT_EQ(many.energies, bound.energies().energy);
  EXPECT_EQ(many.no_selection_floor, 1 - 1.0 / 16);
  EXPECT_EQ(many.applies.rfind("to 16 orthonormal points", 0), 0u) << many.applies;
  EXPECT_GT(*many.lower_bound, *certify({.d = 64, .rank = 8, .heads = 8}).lower_bound);
}

TEST(Certificate, BoundsTheChoiceAmongIndependentPoints) {
  LayerQuestion q{.d = 16, .rank = 4, .heads = 4, .n = 4, .target = Neighbour::nearest_of_independent};
  const Certificate four = certify(q);
  const ChoiceBound bound(16, 4, independent_energies(16, 4));
  EXPECT_EQ(four.lower_bound, bound.at(4));
  EXPECT_EQ(four.bound_error, bound.error_bar(4));
  EXPECT_EQ(four.energies, bound.energies().energy);
  EXPECT_EQ(four.no_selection_floor, independent_floor(16, 4));
  EXPECT_EQ(four.temperature_coefficient, independent_temperature_coefficient(16, 4));
  EXPECT_EQ(four.applies.rfind("to 4 independent points, each uniform on the sphere, ", 0), 0u)
      << four.applies;
  // Of more points than dimensions, too, and of two points that of orthonormal ones.
  q.n = 100;
  EXPECT_GT(certify(q).lower_bound, 0);
  q.n = 2;
  EXPECT_EQ(certify(q).lower_bound, lower_bound(16, 4, 4));
  EXPECT_EQ(certify(q).vote_error, vote_error(16, 4));
}

TEST(Certificate, HasNoBoundWhereNoneIsProved) {
  const Certificate circle =
      certify({.d = 2, .rank = 1, .heads = 1, .n = 3, .target = Neighbour::nearest_of_independent});
  EXPECT_FALSE(circle.lower_bound);
  EXPECT_EQ(circle.applies, "no bound: for independent points it is computed from 3 dimensions on");

  const Certificate self = certify({.d = 64, .rank = 8, .heads = 8, .n = 16, .target = Neighbour::farthest});
  EXPECT_FALSE(self.lower_bound);
  EXPECT_NEAR(self.no_selection_floor, 0.892, 1e-3);
  EXPECT_EQ(self.applies,
            "no bound: it is proved for a query of its own (the target nearest, whose farthest has the same "
            "numbers), "
            "not for self-attention among independent points");
}

TEST(Certificate, OfFullRankBoundsNothing) {
  const Certificate c = certify({.d = 16, .rank = 16, .heads = 1});
  EXPECT_TRUE(c.full_rank);
  EXPECT_EQ(c.lower_bound, 0);
}

TEST(Certificate, RefusesWhatCannotBeMeant) {
  const auto message = [](const LayerQuestion& q) {
    const Error error = error_of([&] { certify(q); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message();
  };
  EXPECT_EQ(message({.d = 1}), "expected a width d from 2 to 65536, but got 1");
  EXPECT_EQ(message({.d = 64, .rank = 65}), "expected a rank from 1 to the width 64, but got 65");
  EXPECT_EQ(message({.d = 64, .rank = 0}), "expected a rank from 1 to the width 64, but got 0");
  EXPECT_EQ(message({.heads = 0}), "expected a whole number of heads, at least 1, but got 0");
  EXPECT_EQ(message({.heads = 1.5}), "expected a whole number of heads, at least 1, but got 1.5");
  EXPECT_EQ(message({.heads = kNan}), "expected a whole number of heads, at least 1, but got nan");
  EXPECT_EQ(message({.n = 1}), "expected from 2 to 1000000 points, but got 1");
  EXPECT_EQ(message({.d = 8, .n = 9}), "there are no 9 orthonormal points in 8 dimensions");
}

TEST(Judge, TakesAValueBelowTheBoundForAFault) {
  const Certificate c = certify({.d = 16, .rank = 4, .heads = 4});
  const double bound = *c.lower_bound;
  const Judgement fault = judge(bound - 0.0031, 0.001, c);
  EXPECT_EQ(fault.standing, TrialStanding::below_bound);
  EXPECT_EQ(fault.text.rfind("fault of the experiment: ", 0), 0u) << fault.text;
  EXPECT_EQ(judge(bound - 0.0029, 0.001, c).standing, TrialStanding::ok);
  EXPECT_EQ(judge(bound - 1e-6, kNan, c).standing, TrialStanding::below_bound);
}

TEST(Judge, TakesAValueAtTheFloorForNoSelection) {
  const Certificate c = certify({.d = 64, .rank = 1, .heads = 64, .n = 16, .target = Neighbour::farthest});
  const double floor = c.no_selection_floor;
  const Judgement none = judge(floor, 0.0001, c);
  EXPECT_EQ(none.standing, TrialStanding::no_selection);
  EXPECT_EQ(none.text.rfind("no better than no selection: ", 0), 0u) << none.text;
  EXPECT_EQ(judge(floor * (1 - 0.9 * kFloorTolerance), 0, c).standing, TrialStanding::no_selection);
  EXPECT_EQ(judge(floor * (1 - 1.1 * kFloorTolerance), 0, c).standing, TrialStanding::ok);
  EXPECT_EQ(judge(floor - 0.014, 0.005, c).standing, TrialStanding::no_selection);
  EXPECT_EQ(judge(floor, 0.03, c).standing, TrialStanding::ok);  // it may be 0.8 or 0.98: nothing is known
  EXPECT_EQ(judge(floor, std::numeric_limits<double>::infinity(), c).standing, TrialStanding::ok);
  const Judgement worse = judge(1.165, 0.01, c);
  EXPECT_EQ(worse.standing, TrialStanding::worse);
  EXPECT_EQ(worse.text, "worse than an answer of zero: 1.165 is above 1");
  EXPECT_EQ(judge(1.02, 0.01, c).standing, TrialStanding::ok);
  EXPECT_EQ(judge(0.5 * floor, 0.01, c).text, "");
}

TEST(Judge, TakesAnErrorOfOneThatNeverScattersForAnAnswerOfZero) {
  const Certificate c = certify({.d = 64, .rank = 4, .heads = 16, .n = 16, .target = Neighbour::farthest});
  const double near_one = kZeroTolerance * (1 - c.no_selection_floor);
  const Judgement dead = judge(1 - 1e-8, 1e-8, c);
  EXPECT_EQ(dead.standing, TrialStanding::answers_zero);
  EXPECT_EQ(dead.text.rfind("the answer is zero", 0), 0u) << dead.text;
  EXPECT_EQ(judge(1 + 0.9 * near_one, 0.9 * near_one, c).standing, TrialStanding::answers_zero);
  EXPECT_EQ(judge(1 - 1.1 * near_one, 0, c).standing, TrialStanding::no_selection);
  EXPECT_EQ(judge(1, 1.1 * near_one, c).standing, TrialStanding::no_selection);  // 1 in the mean alone
  // The nearest of many points without selection is near 1, too, and is no answer of zero.
  Certificate many;
  many.no_selection_floor = nearest_floor(1000);
  EXPECT_EQ(judge(many.no_selection_floor, 1e-6, many).standing, TrialStanding::no_selection);
  EXPECT_EQ(judge(1, 1e-6, many).standing, TrialStanding::answers_zero);
  Certificate none;
  none.no_selection_floor = std::numeric_limits<double>::infinity();
  EXPECT_EQ(judge(1, 0, none).standing, TrialStanding::ok);  // targets of another length, for all we know
}

TEST(Judge, TakesAnErrorBelowOneByMoreThanItsStandardErrorForAnAnswer) {
  const Certificate c = certify({.d = 8, .rank = 8, .heads = 1});
  const Judgement lives = judge(0.997, 0.00011, c);
  EXPECT_EQ(lives.standing, TrialStanding::nearly_zero);
  EXPECT_EQ(lives.text, "hardly better than an answer of zero: 0.997 is just below 1");
  EXPECT_EQ(judge(1 - 0.9 * 0.00033, 0.00011, c).standing, TrialStanding::answers_zero);
  EXPECT_EQ(judge(1.003, 0.00011, c).standing, TrialStanding::answers_zero);  // little, and not of the target
  EXPECT_EQ(judge(1 - 2 * kZeroRounding, 1e-9, c).standing, TrialStanding::nearly_zero);
  EXPECT_EQ(judge(1 - kZeroRounding / 2, 1e-9, c).standing, TrialStanding::answers_zero);
}

TEST(Judge, FindsThePublishedRankOneValuesAtTheFloor) {
  struct Row {
    int64_t n;
    double trained;
  };
  for (const Row& row : {Row{4, .6585}, {16, .8886}, {64, .9024}, {256, .8808}}) {
    const Certificate c =
        certify({.d = 64, .rank = 1, .heads = 64, .n = row.n, .target = Neighbour::farthest});
    EXPECT_EQ(judge(row.trained, 0, c).standing, TrialStanding::no_selection) << row.n;
  }
}

TEST(Judge, FindsThePublishedTwoPointValuesPossible) {
  struct Row {
    int64_t rank;
    double heads, trained;
  };
  for (const Row& row : {Row{1, 16, .181},
                         {2, 8, .175},
                         {4, 4, .173},
                         {4, 16, .169},
                         {8, 2, .202},
                         {8, 8, .151},
                         {12, 5, .116},
                         {16, 1, .029}})
    EXPECT_EQ(judge(row.trained, .0013, certify({.d = 16, .rank = row.rank, .heads = row.heads})).standing,
              TrialStanding::ok)
        << row.rank << " " << row.heads;
}

TEST(Judge, SaysThatATrialDiverged) {
  EXPECT_EQ(judge(kNan, 0, certify({})).standing, TrialStanding::not_finite);
}

}  // namespace
}  // namespace rankscope
