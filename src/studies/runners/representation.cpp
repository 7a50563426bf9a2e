// The density of random rank-1 heads that would represent the nearest of two points: closed forms.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "studies/support/one_by_one.h"
#include "theory/representation.h"

namespace rankscope {
namespace {

std::vector<Key> representation_keys() {
  return {{"d", int64_t{4}, "width of a point", 2, 4096},
          {"degree", int64_t{49}, "the highest harmonic that is represented", 1, 9999},
          {"normalisation",
           std::string("correct"),
           "of the polynomials; published: too large by the root of N(d, l)",
           0,
           0,
           {"correct", "published"}},
          {"angle", 0.0, "degrees between query and key", 0, 180}};
}

void check_representation(const Config& c) {
  if (integer(c, "degree") % 2 == 0)
    throw usage_error("the target has odd harmonics only, but the degree is even").hint("an odd degree");
}

double representation_flops(const Config& c) { return 10 * number(c, "degree"); }

Outcome evaluate(const Config& c) {
  const bool published = text(c, "normalisation") == "published";
  const HeadDensity density(integer(c, "d"), integer(c, "degree"),
                            published ? Normalisation::published : Normalisation::correct);
  const double cosine = std::cos(number(c, "angle") * std::numbers::pi / 180);
  Outcome out;
  out.values = {{"u", std::fabs(density.at(cosine))}, {"peak", density.peak()}, {"mse", density.error()}};
  return out;
}

void run_representation(std::span<const TrialJob> jobs, const RunContext& context) {
  run_one_by_one(jobs, context, representation_flops, evaluate);
}

}  // namespace

extern const Runner runner_representation{
    .name = "representation",
    .summary = "evaluates the density of heads that represents the target",
    .keys = representation_keys(),
    .results = {"u", "peak", "mse"},
    .check = check_representation,
    .flops = representation_flops,
    .stack_key = [](const Config&) { return std::string("all"); },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 1000; },
    .run = run_representation};

}  // namespace rankscope
