#include "theory/certificate.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "theory/choice_bound.h"
#include "theory/harmonics.h"
#include "theory/independent_energies.h"
#include "theory/limits.h"
#include "theory/lower_bound.h"
#include "theory/vote.h"

namespace rankscope {
namespace {

constexpr int64_t kMostWidth = 65536, kMostPoints = 1'000'000;
constexpr double kMostHeads = 1e300;

void check(const LayerQuestion& q) {
  if (q.d < 2 || q.d > kMostWidth)
    throw usage_error(fmt::format("expected a width d from 2 to {}, but got {}", kMostWidth, q.d));
  if (q.rank < 1 || q.rank > q.d)
    throw usage_error(fmt::format("expected a rank from 1 to the width {}, but got {}", q.d, q.rank))
        .hint(fmt::format("{} is full rank: more dimensions of a head add nothing", q.d));
  if (!(q.heads >= 1 && q.heads <= kMostHeads && std::floor(q.heads) == q.heads))
    throw usage_error(fmt::format("expected a whole number of heads, at least 1, but got {}", q.heads));
  if (q.n < 2 || q.n > kMostPoints)
    throw usage_error(fmt::format("expected from 2 to {} points, but got {}", kMostPoints, q.n));
  if (q.target == Neighbour::nearest && q.n > q.d)
    throw usage_error(fmt::format("there are no {} orthonormal points in {} dimensions", q.n, q.d))
        .hint("at most d points, or independent ones: --points independent");
}

bool is_out_of_reach(const LayerQuestion& q) {
  return q.target == Neighbour::nearest_of_independent && q.d < 3 && q.n > 2;
}

std::string where_it_applies(const LayerQuestion& q) {
  if (q.target == Neighbour::farthest)
    return "no bound: it is proved for a query of its own (the target nearest, whose farthest has the same "
           "numbers), not for self-attention among independent points";
  if (is_out_of_reach(q)) return "no bound: for independent points it is computed from 3 dimensions on";
  return fmt::format(
      "to {} {}, a query of its own that asks for its nearest or its farthest, one layer, and the mean "
      "squared error over fresh data",
      q.n == 2 ? "two" : fmt::format("{}", q.n),
      q.target == Neighbour::nearest ? "orthonormal points in uniformly random directions"
                                     : "independent points, each uniform on the sphere");
}

template <class Bound>
void add_bound(const Bound& bound, double heads, Certificate& out) {
  out.lower_bound = bound.at(heads);
  for (const double error : {0.1, 0.05, 0.02, 0.01})
    out.heads_needed.push_back({error, bound.log10_heads_for(error)});
}

}  // namespace

std::string_view target_of(Neighbour neighbour) {
  return neighbour == Neighbour::farthest ? "farthest" : "nearest";
}

std::string_view points_of(Neighbour neighbour) {
  return neighbour == Neighbour::nearest ? "orthonormal" : "independent";
}

Certificate certify(const LayerQuestion& q) {
  check(q);
  Certificate out;
  out.question = q;
  out.full_rank = q.rank == q.d;
  out.applies = where_it_applies(q);
  for (const int64_t l : {1, 3, 5, 7, 9}) out.eta.push_back(sign_energy(q.d, l));
  if (q.target == Neighbour::farthest) {
    out.temperature_coefficient = farthest_temperature_coefficient(q.d, q.n);
    out.no_selection_floor = farthest_floors(q.d, q.n).no_selection;
    return out;
  }
  const bool orthonormal = q.target == Neighbour::nearest;
  out.temperature_coefficient =
      orthonormal ? nearest_temperature_coefficient(q.d, q.n) : independent_temperature_coefficient(q.d, q.n);
  out.no_selection_floor = orthonormal ? nearest_floor(q.n) : independent_floor(q.d, q.n);
  if (q.n == 2) {  // x_1 - x_2 points anywhere and has a mean square of 2, orthonormal or independent
    add_bound(LowerBound(q.d, q.rank), q.heads, out);
    out.plateau = plateau(q.d);
    out.vote_error = vote_error(q.d, q.heads);
    return out;
  }
  if (is_out_of_reach(q)) return out;
  const ChoiceBound bound(q.d, q.rank,
                          orthonormal ? choice_energies(q.d, q.n) : independent_energies(q.d, q.n));
  add_bound(bound, q.heads, out);
  out.bound_error = bound.error_bar(q.heads);
  out.plateau = bound.plateau();
  out.energies = bound.energies().energy;
  return out;
}

Judgement judge(double value, double standard_error, const Certificate& certificate) {
  const double slack = std::isnan(standard_error) ? 0 : 3 * standard_error;
  if (!std::isfinite(value))
    return {TrialStanding::not_finite, "the error is not finite: the trial diverged"};
  if (certificate.lower_bound && value < *certificate.lower_bound - slack)
    return {
        TrialStanding::below_bound,
        fmt::format("fault of the experiment: {:.4g} is below the bound {:.4g} by more than three standard "
                    "errors; look for a leak, points that are not uniform, or a value chosen for being small",
                    value, *certificate.lower_bound)};
  const double floor = certificate.no_selection_floor;
  const double near_one = kZeroTolerance * (1 - floor);  // less than zero where there is no floor
  if (std::abs(value - 1) <= near_one && !(standard_error > near_one)) {
    if (value < 1 - std::max(slack, kZeroRounding))
      return {TrialStanding::nearly_zero,
              fmt::format("hardly better than an answer of zero: {:.4g} is just below 1", value)};
    return {TrialStanding::answers_zero, "the answer is zero, which errs by 1 whatever the layer could do"};
  }
  if (std::isfinite(floor) && value > 1 + std::max(slack, kFloorTolerance))
    return {TrialStanding::worse, fmt::format("worse than an answer of zero: {:.4g} is above 1", value)};
  // Where the floor is zero (the farther of two points) selection is not needed.
  if (floor > 0 && slack <= kFloorScatter * floor &&
      value >= floor - std::max(slack, kFloorTolerance * floor))
    return {
        TrialStanding::no_selection,
        fmt::format("no better than no selection: {:.4g} is what comes without looking at scores ({:.4g})",
                    value, floor)};
  return {TrialStanding::ok, ""};
}

}  // namespace rankscope
