// Random rank-1 hard heads with their best weights: no training, one linear system.
#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "studies/support/one_by_one.h"
#include "theory/head_weights.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

std::vector<Key> features_keys() {
  return {{"construction",
           std::string("uniform"),
           "how queries and keys are drawn",
           0,
           0,
           {"gaussian", "uniform", "equal", "as-coded"}},
          {"d", int64_t{16}, "width of a point", 2, 4096},
          {"heads", int64_t{128}, "heads", 1, 1 << 18},
          {"tolerance", 1e-7, "of the residual, relative", 1e-14, 1},
          {"iterations", int64_t{2000}, "of conjugate gradients, at most", 1, 1e6},
          {"seed", int64_t{0}, "of the heads", 0, 1e15}};
}

void check_features(const Config&) {}  // every point within the ranges is possible

// The matrix, and some tens of products with it: what the solver takes is known only when it is done.
double features_flops(const Config& c) {
  const double h = number(c, "heads");
  return h * h * (4 * number(c, "d") + 240);
}

Outcome solve_features(const Config& c, int threads) {
  const auto start = std::chrono::steady_clock::now();
  const Heads heads = random_heads(construction_named(text(c, "construction")), integer(c, "d"),
                                   integer(c, "heads"), static_cast<uint64_t>(integer(c, "seed")));
  IterationOptions options;
  options.tolerance = number(c, "tolerance");
  options.most_iterations = integer(c, "iterations");
  options.threads = threads;
  const HeadWeights found = weights_by_iteration(heads, options);
  Outcome out;
  out.values = {{"mse", found.error},
                {"residual", found.residual},
                {"iterations", static_cast<double>(found.iterations)},
                {"smallest_eigenvalue", found.smallest_eigenvalue},
                {"converged", found.converged ? 1.0 : 0.0},
                {"lower_bound", LowerBound(integer(c, "d"), 1).at(number(c, "heads"))}};
  out.values["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

void run_features(std::span<const TrialJob> jobs, const RunContext& context) {
  run_one_by_one(jobs, context, features_flops,
                 [&](const Config& c) { return solve_features(c, context.threads); });
}

}  // namespace

extern const Runner runner_features{.name = "features",
                                    .summary = "solves for the best weights of random rank-1 hard heads",
                                    .keys = features_keys(),
                                    .results = {"mse", "residual", "iterations", "smallest_eigenvalue",
                                                "converged", "lower_bound", "seconds"},
                                    .check = check_features,
                                    .flops = features_flops,
                                    .run = run_features};

}  // namespace rankscope
