// The majority vote of rank-1 heads: its error for two points, and what one head knows about more.
#include <fmt/format.h>

#include "base/error.h"
#include "studies/support/one_by_one.h"
#include "theory/vote.h"

namespace rankscope {
namespace {

std::vector<Key> vote_keys() {
  return {{"d", int64_t{64}, "width of a point", 2, 4096},
          {"n", int64_t{2}, "orthonormal points", 2, 4096},
          {"heads", int64_t{256}, "heads that vote", 1, 1e12},
          {"samples", int64_t{200000}, "draws for the advantage of one head", 2, 1e9},
          {"seed", int64_t{0}, "of the draws", 0, 1e15}};
}

void check_vote(const Config& c) {
  if (integer(c, "n") > integer(c, "d"))
    throw usage_error(
        fmt::format("{} orthonormal points do not fit in {} dimensions", integer(c, "n"), integer(c, "d")))
        .hint("n of at most d");
}

double vote_flops(const Config& c) {
  return number(c, "samples") * (2 * number(c, "d") + 4 * number(c, "n"));
}

Outcome count_votes(const Config& c) {
  const int64_t d = integer(c, "d"), n = integer(c, "n");
  Outcome out;
  if (n == 2) {  // the construction is for two points
    out.values["mse"] = vote_error(d, number(c, "heads"));
    out.values["asymptote"] = vote_asymptote(d, number(c, "heads"));
  }
  const Estimate advantage =
      vote_advantage(d, n, integer(c, "samples"), static_cast<uint64_t>(integer(c, "seed")));
  out.values["advantage"] = advantage.value;
  out.values["advantage_stderr"] = advantage.stderr_;
  return out;
}

void run_vote(std::span<const TrialJob> jobs, const RunContext& context) {
  run_one_by_one(jobs, context, vote_flops, count_votes);
}

}  // namespace

extern const Runner runner_vote{.name = "vote",
                                .summary = "counts the votes of rank-1 hard heads",
                                .keys = vote_keys(),
                                .results = {"mse", "asymptote", "advantage", "advantage_stderr"},
                                .check = check_vote,
                                .flops = vote_flops,
                                .run = run_vote};

}  // namespace rankscope
