#include "theory/representation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

struct Peak {
  int64_t d;
  double published, correct;
};

TEST(HeadDensity, PeaksAreThoseOfTheFigureAndOfTheCorrectedOne) {
  for (const Peak& p : {Peak{4, 1.349e8, 2.65e6}, {6, 6.465e12, 8.33e9}, {8, 6.029e16, 7.78e12}}) {
    EXPECT_NEAR(HeadDensity(p.d, 49, Normalisation::published).peak(), p.published, 0.5e-3 * p.published)
        << p.d;
    EXPECT_NEAR(HeadDensity(p.d, 49).peak(), p.correct, 0.5e-2 * p.correct) << p.d;
  }
}

TEST(HeadDensity, IsLargestAtThePoles) {
  for (const int64_t d : {4, 6, 8}) {
    const HeadDensity u(d, 49), published(d, 49, Normalisation::published);
    double lobe = 0;
    for (double angle = 0; angle < 3.1416; angle += 0.001) {
      EXPECT_LE(std::abs(u.at(std::cos(angle))), u.peak() * (1 + 1e-9)) << d << " " << angle;
      if (angle > 1.4 && angle < 1.75) lobe = std::max(lobe, std::abs(published.at(std::cos(angle))));
    }
    if (d == 4) {
      EXPECT_NEAR(lobe, 2.6e7, 0.05e7);
    }  // the side lobe near pi/2 of the figure
    EXPECT_NEAR(u.at(-1), -u.at(1), 1e-9 * u.peak());
  }
}

TEST(HeadDensity, LeavesTheEnergyAboveItsDegree) {
  EXPECT_NEAR(HeadDensity(8, 49).error(), 0.5 * sign_tail(8, 49), 1e-15);
  EXPECT_NEAR(HeadDensity(8, 1).error(), plateau(8), 1e-15);
}

TEST(HeadDensity, GivesBackTheSignInEveryDegreeItHolds) {
  // E over <q,k> of u P_l lambda_l^2 must be lambda_l: with E P_l P_m = 1/N it is N / lambda / N lambda^2.
  const HeadDensity u(3, 9);
  for (const int64_t l : {1, 3, 5, 7, 9}) {
    // In three dimensions the cosine is uniform, and the rule is exact for polynomials of degree 39.
    const double mean = 0.5 * integrate(-1, 1, 1, [&](double t) {
                          Gegenbauer p(3, t);
                          while (p.degree() < l) p.next();
                          return u.at(t) * p.value();
                        });
    const double lambda = sign_eigenvalue(3, l);
    EXPECT_NEAR(mean * lambda * lambda, lambda, 1e-13) << l;
  }
}

}  // namespace
}  // namespace rankscope
