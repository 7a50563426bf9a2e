#include "theory/harmonics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

// E f(t) over one coordinate of a uniform point: the plain definition, in the angle.
template <class Function>
double mean_over_sphere(int64_t d, const Function& f) {
  const auto power = static_cast<double>(d - 2);
  const auto half = [&](double from) {  // f may jump at the equator
    return integrate(from, from + pi / 2, 40,
                     [&](double phi) { return std::pow(std::cos(phi), power) * f(std::sin(phi)); });
  };
  return density_at_equator(d) * (half(-pi / 2) + half(0));
}

TEST(Harmonics, CountIsThatOfHomogeneousPolynomialsLessThoseWithASquareTakenOut) {
  const auto choose = [](int64_t n, int64_t k) {
    double c = 1;
    for (int64_t i = 1; i <= k; ++i) c = c * static_cast<double>(n - k + i) / static_cast<double>(i);
    return c;
  };
  for (const int64_t d : {2, 3, 4, 7, 16})
    for (int64_t l = 0; l < 12; ++l) {
      const double expected = choose(l + d - 1, l) - (l > 1 ? choose(l + d - 3, l - 2) : 0);
      EXPECT_NEAR(std::exp(log_harmonic_count(d, l)), expected, 1e-12 * expected) << d << " " << l;
    }
}

TEST(Harmonics, EigenvaluesInThreeDimensionsAreFractions) {
  EXPECT_NEAR(sign_eigenvalue(3, 1), 0.5, 1e-15);
  EXPECT_NEAR(sign_eigenvalue(3, 3), -0.125, 1e-15);
  EXPECT_EQ(sign_eigenvalue(3, 2), 0);
}

TEST(Harmonics, EigenvaluesAreTheMeansTheyStandFor) {
  for (const int64_t d : {2, 3, 5, 12})
    for (const int64_t l : {1, 3, 5}) {
      const auto polynomial = [&](double t) {
        Gegenbauer p(d, t);
        while (p.degree() < l) p.next();
        return p.value();
      };
      EXPECT_NEAR(mean_over_sphere(d, [&](double t) { return (t < 0 ? -1 : 1) * polynomial(t); }),
                  sign_eigenvalue(d, l), 1e-13);
      EXPECT_NEAR(mean_over_sphere(d, [&](double t) { return std::asin(t) * polynomial(t); }),
                  arcsine_eigenvalue(d, l), 1e-13);
      EXPECT_NEAR(mean_over_sphere(d, [&](double t) { return polynomial(t) * polynomial(t); }),
                  std::exp(-log_harmonic_count(d, l)), 1e-13);
    }
}

TEST(Harmonics, PolynomialsInThePlaneAreChebyshevs) {
  Gegenbauer p(2, std::cos(0.7));
  for (int l = 0; l < 50; ++l, p.next()) EXPECT_NEAR(p.value(), std::cos(0.7 * l), 1e-12);
}

struct EnergyRow {
  int64_t d;
  double eta[5], plateau;
};

TEST(Harmonics, EnergiesAndPlateausAreThoseOfTheSheet) {
  const EnergyRow rows[] = {{2, {.81057, .09006, .03242, .01654, .01001}, .09472},
                            {4, {.72051, .11528, .04764, .02614, .01654}, .13975},
                            {8, {.67757, .11711, .05226, .03037, .02006}, .16122},
                            {16, {.65681, .11364, .05201, .03112, .02114}, .17159},
                            {32, {.64664, .11045, .05058, .03048, .02092}, .17668},
                            {64, {.64161, .10843, .04937, .02969, .02038}, .17919},
                            {128, {.63911, .10731, .04862, .02912, .01993}, .18044}};
  for (const EnergyRow& row : rows) {
    for (int k = 0; k < 5; ++k)
      EXPECT_NEAR(sign_energy(row.d, 2 * k + 1), row.eta[k], 0.5e-5) << row.d << " " << k;
    EXPECT_NEAR(plateau(row.d), row.plateau, 0.5e-5) << row.d;
  }
}

TEST(Harmonics, EnergiesWalkedByTheirRatioAreTheClosedForm) {
  for (const int64_t d : {2, 3, 64, 4096}) {
    SignEnergies e(d);
    while (e.degree() < 2001) e.next();
    // lgamma of arguments near 6000 is about 5e4, each with half a unit in the last place.
    EXPECT_NEAR(e.energy(), sign_energy(d, 2001), 1e-10 * e.energy()) << d;
  }
}

TEST(Harmonics, EnergiesSumToOne) {
  // What is left above L is about sqrt(d) / 2L.
  for (const int64_t d : {2, 3, 16, 64}) {
    const double left = sign_tail(d, 1'000'000);
    EXPECT_GT(left, 0) << d;
    EXPECT_LT(left, std::sqrt(static_cast<double>(d)) / 1e6) << d;
  }
}

TEST(Harmonics, TailsFollowTheirTwoLaws) {
  const double constant = std::pow(2 / pi, 1.5);
  EXPECT_NEAR(constant, 0.508, 0.5e-3);
  EXPECT_NEAR(sign_tail(100'000, 400) * std::sqrt(400.0), constant,
              0.01 * constant);  // L << d: corrections of 1 / L
  // L >> d: the same constant times sqrt(d) / L, with a correction of 1 / d.
  EXPECT_NEAR(sign_tail(1024, 4'000'001) * 4'000'001 / 32, constant, 0.002 * constant);
  for (const int64_t l : {1, 3, 9}) EXPECT_NEAR(sign_energy(1'000'000, l), sign_energy_limit(l), 1e-5);
}

}  // namespace
}  // namespace rankscope
