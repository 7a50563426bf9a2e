// Which keys are explained away: scores of 16 queries and 16 keys, random with a stronger diagonal, and one
// key whose scores are all raised by `bias`. A normalisation turns them into a pattern, and what is read off
// it is how many keys receive less than 1 / keys in all, and the rank that is left. With `reading = "em"`,
// queries are centres and keys are data of a mixture of Gaussians: one application moves the centres, and the
// likelihood is compared.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/stream_name.h"
#include "spec/variant_text.h"
#include "studies/support/one_by_one.h"
#include "studies/support/patterns.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

constexpr int64_t kKeys = 16;
constexpr double kDiagonal = 3;
constexpr int64_t kCentres = 5, kData = 20, kPlace = 3;  // of the mixtures
constexpr double kNoFall = 1e-10;                        // likelihoods are sums of 20 logarithms

std::vector<Key> explained_away_keys() {
  return {{"reading",
           std::string("pattern"),
           "of the pattern itself, or of one step of expectation maximisation",
           0,
           0,
           {"pattern", "em"}},
          {"normalisation", std::string("softmax"),
           "softmax, doubly_normalised, hybrid_normalised, or sinkhorn:rounds=3"},
          {"share", 0.5, "hybrid_normalised: how much of it is doubly normalised", 1e-6, 1 - 1e-6},
          {"bias", 8.0, "added to every score of the first key", -100, 100},
          {"draws", int64_t{100}, "of scores", 1, 1e6},
          {"seed", int64_t{0}, "of the draws", 0, 1e15}};
}

MadeUpHead head_of(const Config& c) {
  return {.variant = text(c, "normalisation"), .share = number(c, "share")};
}

uint64_t seed_of(const Config& c, int64_t draw) {
  return static_cast<uint64_t>(integer(c, "seed") * 1000003 + draw);
}

std::map<std::string, double> read_patterns(const Config& c) {
  double away = 0, rank = 0, entropy = 0, least = INFINITY;
  for (int64_t draw = 0; draw < integer(c, "draws"); ++draw) {
    at::Tensor scores = normal_matrix(seed_of(c, draw), stream_of("explained away"), kKeys, kKeys) +
                        kDiagonal * at::eye(kKeys, at::kDouble);
    scores.select(1, 0) += number(c, "bias");
    const at::Tensor p = pattern_of_scores(head_of(c), scores), columns = p.sum(0) * kKeys;
    away += static_cast<double>((columns < 1).sum().item<int64_t>());
    least = std::min(least, columns.min().item<double>());
    rank += entropy_rank(p);
    entropy -= (p * at::log(p.clamp_min(1e-300))).sum(1).mean().item<double>();
  }
  const double n = number(c, "draws");
  return {{"explained_away", away / n},
          {"effective_rank", rank / n},
          {"entropy", entropy / n},
          {"least_column", least}};  // in units of 1 / keys: doubly normalised attention has at least 1
}

// sum over data of log sum over centres of exp(-|x - c|^2 / 2)
double likelihood(const at::Tensor& centres, const at::Tensor& data) {
  const at::Tensor apart = centres.unsqueeze(1) - data.unsqueeze(0);
  return at::logsumexp((apart * apart).sum(-1) * -0.5, {0}).sum().item<double>();
}

std::map<std::string, double> read_steps(const Config& c) {
  double falls = 0, gain = 0, worst = INFINITY;
  for (int64_t draw = 0; draw < integer(c, "draws"); ++draw) {
    const at::Tensor centres = 2 * normal_matrix(seed_of(c, draw), stream_of("centres"), kCentres, kPlace),
                     data = 2 * normal_matrix(seed_of(c, draw), stream_of("data"), kData, kPlace);
    const at::Tensor apart = centres.unsqueeze(1) - data.unsqueeze(0);
    const at::Tensor p = pattern_of_scores(head_of(c), (apart * apart).sum(-1) * -0.5);
    const double change = likelihood(at::matmul(p, data), data) - likelihood(centres, data);
    falls += change < -kNoFall;
    gain += change;
    worst = std::min(worst, change);
  }
  const double n = number(c, "draws");
  return {{"likelihood_fell", falls / n}, {"likelihood_gain", gain / n}, {"worst_gain", worst}};
}

Outcome solve_explained_away(const Config& c) {
  const c10::NoGradGuard no_grad;
  Outcome out;
  out.values = text(c, "reading") == "em" ? read_steps(c) : read_patterns(c);
  return out;
}

void check_explained_away(const Config& c) {
  const std::string name = read_variant(text(c, "normalisation")).name;
  const std::vector<std::string> known{"softmax", "doubly_normalised", "hybrid_normalised", "sinkhorn"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw unknown_name("normalisation", name, known);
}

double explained_away_flops(const Config& c) { return number(c, "draws") * 20 * kKeys * kKeys * kKeys; }

void run_explained_away(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  run_one_by_one(jobs, context, explained_away_flops, solve_explained_away);
}

}  // namespace

extern const Runner runner_explained_away{
    .name = "explained_away",
    .summary = "counts keys that a normalisation explains away, and steps of expectation maximisation",
    .keys = explained_away_keys(),
    .results = {"explained_away", "effective_rank", "entropy", "least_column", "likelihood_fell",
                "likelihood_gain", "worst_gain"},
    .check = check_explained_away,
    .flops = explained_away_flops,
    .run = run_explained_away};

}  // namespace rankscope
