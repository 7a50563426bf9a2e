#include "theory/independent_energies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>

#include "theory/harmonics.h"
#include "theory/pole_angle.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

constexpr size_t kDegrees = 33, kPoints = GaussLegendre::kPoints;
constexpr double kMostError = 1e-5;  // a degree whose energy is known to less than this is left out

using Row = std::array<double, kPoints>;

/// Where an integrand is a function of the root of the distance to an end, as powers of half numbers are.
enum class Root { none, at_top, at_bottom };

/// The places of Gauss's rule between two numbers, and integrals from each of them to the upper end. With a
/// root the rule is that of the root.
class Panel {
 public:
  Panel(double from, double to, Root root = Root::none) : from_(from), width_(to - from), root_(root) {}
  double place(size_t i) const {
    const double u = along(i);
    if (root_ == Root::none) return from_ + width_ * u;
    return root_ == Root::at_bottom ? from_ + width_ * u * u : from_ + width_ - width_ * (1 - u) * (1 - u);
  }
  double weight(size_t i) const { return stretch(i) * gauss_legendre().weight[i]; }
  double from_place_up(size_t i, const Row& values) const;

 private:
  static double along(size_t i) { return (1 + gauss_legendre().node[i]) / 2; }
  double stretch(size_t i) const {  // of a place, by its node
    return width_ * (root_ == Root::none ? 0.5 : root_ == Root::at_bottom ? along(i) : 1 - along(i));
  }
  double from_, width_;
  Root root_;
};

double legendre(size_t degree, double x) {
  double now = 1, before = 0;
  for (size_t k = 0; k < degree; ++k) {
    const auto order = static_cast<double>(k);
    const double after = ((2 * order + 1) * x * now - order * before) / (order + 1);
    before = now;
    now = after;
  }
  return now;
}

// Row i integrates, from place i to 1, the polynomial through values at all places: Legendre polynomials have
// the integrals (P_{k-1} - P_{k+1}) / (2k + 1) there.
std::array<Row, kPoints> running_weights() {
  const GaussLegendre& rule = gauss_legendre();
  std::array<Row, kPoints> out{};
  for (size_t i = 0; i < kPoints; ++i)
    for (size_t k = 0; k < kPoints; ++k) {
      const double x = rule.node[i];
      const double integral = k == 0 ? 1 - x : (legendre(k - 1, x) - legendre(k + 1, x)) / 2;
      const double norm = k == 0 ? 0.5 : 1;
      for (size_t j = 0; j < kPoints; ++j)
        out[i][j] += norm * integral * legendre(k, rule.node[j]) * rule.weight[j];
    }
  return out;
}

double Panel::from_place_up(size_t i, const Row& values) const {
  static const std::array<Row, kPoints> weights = running_weights();
  double sum = 0;
  for (size_t j = 0; j < kPoints; ++j) sum += weights[i][j] * stretch(j) * values[j];
  return sum;
}

// The nearest point of y is at one angle from it, that of y' at another.
struct Place {
  Place(const PoleAngle& law, double angle_)
      : angle(angle_),
        cosine(std::cos(angle_)),
        sine(std::sin(angle_)),
        density(law.density(angle_)),
        nearer(law.below(angle_)) {}
  double angle, cosine, sine, density, nearer;
};

// The spherical triangle of y, y' and a point at these angles from them, by the sines of half its
// circumference and of what that is more than each side: no difference of cosines loses digits where it is
// small.
struct Triangle {
  Triangle(double a_, double b_, double theta_)
      : half(std::sin((a_ + b_ + theta_) / 2)),
        a(std::sin((b_ + theta_ - a_) / 2)),
        b(std::sin((a_ + theta_ - b_) / 2)),
        theta(std::sin((a_ + b_ - theta_) / 2)) {}
  /// The angle between theta and the side of `own`.
  double angle(double own, double other) const {
    return 2 * std::atan2(std::sqrt(std::max(0.0, own * theta)), std::sqrt(std::max(0.0, half * other)));
  }
  double half, a, b, theta;
};

class Integral {
 public:
  Integral(int64_t d, int64_t n, int panels)
      : d_(d), n_(static_cast<double>(n)), panels_(panels), nearest_(d, n_), latitude_(d - 1) {
    // cos^l sin^(d-2) of the angle between y and y' is below 1e-30 of its integral beyond, for every degree.
    const double reach = 14 / std::sqrt(static_cast<double>(d));
    least_ = std::max(0.0, pi / 2 - reach);
    most_ = std::min(pi, pi / 2 + reach);
    run();
  }
  double energy(size_t l) const { return (l == 0 ? 1 : 0) - count(l) * sums_[l]; }
  // A term is a product of some ten numbers, each good to a few roundings, and of sines to the power of d.
  // Densities share a factor that is as good as the logarithm of a gamma function, and 1e-18 of the law of a
  // nearest point is left out.
  double rounding(size_t l) const {
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    const auto d = static_cast<double>(d_);
    return count(l) * ((32 + d / 2) * kEpsilon * sizes_[l] +
                       8 * kEpsilon * (1 + log_gamma(d / 2)) * std::abs(sums_[l]) + 1e-17);
  }

 private:
  double count(size_t l) const { return std::exp(log_harmonic_count(d_, static_cast<int64_t>(l))); }

  // Pairs of places, the first at the larger angle: the others are their mirror images.
  void run() {
    const double from = nearest_.from(), width = (nearest_.to() - from) / panels_;
    for (int p = 0; p < panels_; ++p) {
      const Panel outer(from + p * width, from + (p + 1) * width);
      for (size_t i = 0; i < kPoints; ++i) {
        const Place a(nearest_.one(), outer.place(i));
        const double step = (a.angle - from) / (p + 1);
        for (int q = 0; q <= p; ++q) {
          const Panel inner(from + q * step, from + (q + 1) * step);
          for (size_t j = 0; j < kPoints; ++j) {
            const Place b(nearest_.one(), inner.place(j));
            weight_ = 2 * outer.weight(i) * inner.weight(j) * n_ * (n_ - 1) * a.density * b.density;
            if (weight_ < 1e-60) continue;
            apart(a, b);
            overlapping(a, b);
          }
        }
      }
    }
  }

  // The part of the other points' law that lies outside both caps, for all of them.
  double others(double outside) const {
    if (n_ == 2) return 1;
    return outside > 0 ? std::exp((n_ - 2) * std::log(outside)) : 0;
  }

  void add(double theta, double weight, double value) {
    const double term =
        weight_ * weight * value * nearest_.one().density(theta);  // the angle of y and y' has the same law
    Gegenbauer p(d_, std::cos(theta));
    for (size_t l = 0; l < kDegrees; ++l, p.next()) {
      sums_[l] += term * p.value();
      sizes_[l] += std::abs(term * p.value());
    }
  }

  // Caps that do not meet: both points may be anywhere at their angles.
  void apart(const Place& a, const Place& b) {
    const double from = std::max(least_, a.angle + b.angle);
    if (from >= most_) return;
    const double outside = others(1 - a.nearer - b.nearer), width = (most_ - from) / panels_;
    for (int p = 0; p < panels_; ++p) {
      const Panel panel(from + p * width, from + (p + 1) * width);
      for (size_t i = 0; i < kPoints; ++i)
        add(panel.place(i), panel.weight(i), outside * (1 - a.cosine * b.cosine * std::cos(panel.place(i))));
    }
  }

  // Caps that meet, from the angle at which they begin to downwards, their overlap growing. Where it is
  // smaller than a - b one cap holds the other, and nothing is left to count.
  void overlapping(const Place& a, const Place& b) {
    const double end = std::max(least_, a.angle - b.angle);
    const bool large = a.angle + b.angle > pi;  // caps that cover the sphere when y and y' are opposite
    double top = large ? 2 * pi - a.angle - b.angle : a.angle + b.angle;
    double overlap = large ? a.nearer + b.nearer - 1 : 0;
    // Where caps touch, and where one comes to lie within the other, all that changes starts with a power of
    // (d - 2) / 2: of few dimensions a root, if their number is odd. High powers are flat.
    const bool roots = d_ % 2 == 1 && d_ < 12;
    for (Root root = roots ? Root::at_top : Root::none; top > end; root = Root::none) {
      const bool counted = top <= most_;
      double bottom = std::max(end, top - step(top, counted));
      if (!counted) bottom = std::max(bottom, most_);
      if (bottom - end < 1e-12) bottom = end;
      if (bottom == end && root == Root::at_top) bottom = (top + end) / 2;
      const Panel panel(bottom, top, roots && bottom == end ? Root::at_bottom : root);
      Row growth;
      for (size_t i = 0; i < kPoints; ++i) growth[i] = overlap_growth(a, b, panel.place(i));
      if (counted)
        for (size_t i = 0; i < kPoints; ++i)
          add_overlapping(a, b, panel.place(i), panel.weight(i), overlap + panel.from_place_up(i, growth));
      for (size_t i = 0; i < kPoints; ++i) overlap += panel.weight(i) * growth[i];
      top = bottom;
    }
  }

  // The growth has singularities where y and y' are equal or opposite: steps shorten towards them.
  double step(double top, bool counted) const {
    const double finer = 4.0 / panels_, least = 1e-4 * finer;
    const double widest = counted ? (most_ - least_) / panels_ : 0.4 * finer;
    return std::min({widest, std::max(least, 1.5 * finer * (pi - top)), std::max(least, 0.6 * finer * top)});
  }

  // Minus the derivative of the caps' common part by the angle between their poles.
  double overlap_growth(const Place& a, const Place& b, double theta) const {
    const Triangle t(a.angle, b.angle, theta);
    const double sine = std::sin(theta), left = 4 * t.half * t.a * t.b * t.theta / (sine * sine);
    return left > 0 ? std::pow(left, static_cast<double>(d_ - 2) / 2) / (2 * pi) : 0;
  }

  void add_overlapping(const Place& a, const Place& b, double theta, double weight, double overlap) {
    const double outside = others(1 - a.nearer - b.nearer + overlap);
    if (outside == 0) return;
    const double s = std::sin(theta), c = std::cos(theta);
    // On its sphere a point is outside the other cap where its angle to that cap's pole is above this one.
    const Triangle t(a.angle, b.angle, theta);
    const double edge_a = t.angle(t.a, t.b), edge_b = t.angle(t.b, t.a);
    const double free_a = latitude_.below(pi - edge_a), free_b = latitude_.below(pi - edge_b);
    const double along_a = a.cosine * free_a, along_b = b.cosine * free_b;
    const double across_a = -a.sine * latitude_.cosine_above(edge_a),
                 across_b = -b.sine * latitude_.cosine_above(edge_b);
    const double product =
        c * (along_a * along_b - across_a * across_b) + s * (along_a * across_b + across_a * along_b);
    add(theta, weight, outside * (free_a * free_b - product));
  }

  int64_t d_;
  double n_;
  int panels_;
  SmallestAngle nearest_;
  PoleAngle latitude_;  // points at one angle from y are a sphere of one dimension less
  double least_ = 0, most_ = pi, weight_ = 0;
  std::array<double, kDegrees> sums_{}, sizes_{};
};

ChoiceEnergies integrated(int64_t d, int64_t n) {
  const Integral coarse(d, n, 4), fine(d, n, 5);
  // In few dimensions the error falls with a power p of the panels' width, so that it is the distance between
  // the two over (5/4)^p - 1: eight times it holds for p > 1/2. A distance may vanish by chance, where the
  // error changes its sign from degree to degree: the largest so far counts.
  constexpr double kDistances = 8;
  double distance = 0;
  ChoiceEnergies out;
  for (size_t l = 0; l < kDegrees; ++l) {
    const double energy = std::max(0.0, fine.energy(l));  // as every energy is
    distance = std::max(distance, std::abs(energy - coarse.energy(l)));
    const double error = kDistances * distance + fine.rounding(l);
    if (l > 1 && !(error <= kMostError)) break;
    out.energy.push_back(energy);
    out.error.push_back(error);
  }
  return out;
}

}  // namespace

ChoiceEnergies independent_energies(int64_t d, int64_t n) {
  static std::mutex mutex;
  static std::map<std::pair<int64_t, int64_t>, ChoiceEnergies> known;  // sweeps ask again and again
  const std::lock_guard lock(mutex);
  const auto found = known.find({d, n});
  return found != known.end() ? found->second
                              : known.emplace(std::pair{d, n}, integrated(d, n)).first->second;
}

}  // namespace rankscope
