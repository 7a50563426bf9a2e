// How well least squares finds the experts of attention again, by the number of samples. The network is as
// small as the question allows: three tokens of three channels, one head whose first token asks, queries,
// keys and values one wide, and an expert behind every key:
//
//   y = sum_n a_n e(x_n) + noise,   a = softmax_n((u . x_1) (w . x_n)),   u_1 = 1, which fixes what u and w
//                                                                          could exchange
//   linear  e(x) = c . x                       attention as it is
//   gated   e(x) = sigmoid(g . x) (c . x)      a gate on values, of its own weights
//   silu    e(x) = sigmoid(c . x) (c . x)      a gate with the weights of the value
//
// As many atoms are fitted as there are, one, or twice as many, each with weight 1/2. Fits start near the
// truth, so that what is measured is what samples tell, not whether a search finds it.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/stats.h"
#include "base/stream_name.h"
#include "studies/runner.h"
#include "studies/support/patterns.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

constexpr int64_t kTokens = 3, kChannels = 3;
constexpr int64_t kRouting = 5, kExpert = 3;  // numbers of u and w, and of c or g
constexpr double kNear = 0.3;                 // spread of the starts around the truth
constexpr double kGateNoise = 0.3;
constexpr int kMostSteps = 100;
constexpr int64_t kFresh = 2000;  // samples on which the fitted function is compared
const std::vector<int64_t> kSizes{100, 316, 1000, 3162, 10000};

// u_2, u_3, w, c, g
const std::vector<double> kTruth{0.5, -0.5, 1.0, -0.8, 0.6, 1.0, 1.0, -0.5, 1.5, -1.0, 0.8};

std::vector<Key> gate_samples_keys() {
  return {
      {"experts", std::string("linear"), "behind every key", 0, 0, {"linear", "gated", "silu"}},
      {"atoms", int64_t{1}, "that are fitted to the one there is", 1, 2},
      {"samples", int64_t{1000}, "100, 316, 1000, 3162 or 10000; the slope is over all of them", 100, 10000},
      {"replicates", int64_t{20}, "of samples, noise and start", 2, 1000},
      {"seed", int64_t{0}, "of all draws", 0, 1e15}};
}

int64_t numbers_of(const std::string& experts) {
  return kRouting + kExpert + (experts == "gated" ? kExpert : 0);
}

struct Model {
  std::string experts;
  int64_t atoms;

  struct Value {
    at::Tensor f, J;  // [n], [n, atoms * numbers]
  };
  // x [n, tokens, channels], theta [atoms, numbers]
  Value at(const at::Tensor& x, const at::Tensor& theta) const {
    Value out{at::zeros({x.size(0)}, at::kDouble), {}};
    std::vector<at::Tensor> columns;
    const double weight = 1.0 / static_cast<double>(theta.size(0));
    const at::Tensor first = x.select(1, 0), one = at::ones({1}, at::kDouble);
    for (int64_t k = 0; k < theta.size(0); ++k) {
      const at::Tensor t = theta[k], u = at::cat({one, t.narrow(0, 0, 2)}), w = t.narrow(0, 2, 3),
                       c = t.narrow(0, kRouting, kExpert);
      const at::Tensor asks = first.matmul(u).unsqueeze(1), key = x.matmul(w), value = x.matmul(c);
      const at::Tensor a = at::softmax(asks * key, 1);
      at::Tensor e = value, by_c = at::ones_like(value), by_g;
      if (experts == "silu") {
        const at::Tensor s = at::sigmoid(value);
        e = s * value;
        by_c = s * (1 + value * (1 - s));
      }
      if (experts == "gated") {
        const at::Tensor s = at::sigmoid(x.matmul(t.narrow(0, kRouting + kExpert, kExpert)));
        e = s * value;
        by_c = s;
        by_g = s * (1 - s) * value;
      }
      const at::Tensor F = (a * e).sum(1, true), by_score = a * (e - F);
      out.f += weight * F.squeeze(1);
      const auto over_tokens = [&](const at::Tensor& per_token) {  // [n, channels]
        return weight * (per_token.unsqueeze(2) * x).sum(1);
      };
      columns.push_back(weight * (by_score * key).sum(1, true) * first.narrow(1, 1, 2));
      columns.push_back(over_tokens(by_score * asks));
      columns.push_back(over_tokens(a * by_c));
      if (by_g.defined()) columns.push_back(over_tokens(a * by_g));
    }
    out.J = at::cat(columns, 1);
    return out;
  }
};

// Levenberg and Marquardt.
at::Tensor fitted(const Model& model, const at::Tensor& x, const at::Tensor& y, at::Tensor theta) {
  double damping = 1e-2;
  Model::Value now = model.at(x, theta);
  double cost = (y - now.f).square().sum().item<double>();
  for (int step = 0; step < kMostSteps; ++step) {
    const at::Tensor A = now.J.t().matmul(now.J), b = now.J.t().matmul(y - now.f);
    const at::Tensor ridge = at::diag(damping * (at::diag(A) + 1e-9 * at::diag(A).max()));
    const at::Tensor moved = theta + at::linalg_solve(A + ridge, b).view_as(theta);
    const Model::Value there = model.at(x, moved);
    const double less = (y - there.f).square().sum().item<double>();
    if (!(less < cost)) {
      damping *= 4;
      if (damping > 1e8) break;
      continue;
    }
    const bool done = cost - less < 1e-12 * cost;
    theta = moved;
    now = there;
    cost = less;
    damping = std::max(1e-9, damping / 3);
    if (done) break;
  }
  return theta;
}

using Distances = std::map<std::string, double>;

Distances distances(const Model& model, const at::Tensor& theta, const at::Tensor& truth, uint64_t seed) {
  const at::Tensor off = theta - truth;
  const auto rms = [&](int64_t from, int64_t count) {  // over atoms, of the length of the difference
    return std::sqrt(off.narrow(1, from, count).square().sum(1).mean().item<double>());
  };
  Distances out{{"voronoi", rms(0, theta.size(1))},
                {"routing", rms(0, kRouting)},
                {"expert", rms(kRouting, kExpert)},
                {"merged_expert", off.mean(0).narrow(0, kRouting, kExpert).norm().item<double>()}};
  if (model.experts == "gated") out["gate"] = rms(kRouting + kExpert, kExpert);
  const at::Tensor x = normal_matrix(seed, stream_of("gate fresh"), kFresh, kTokens * kChannels)
                           .view({-1, kTokens, kChannels});
  out["function"] =
      std::sqrt((model.at(x, theta).f - model.at(x, truth.unsqueeze(0)).f).square().mean().item<double>());
  return out;
}

Distances replicate(const Model& model, int64_t n, uint64_t seed) {
  const int64_t p = numbers_of(model.experts);
  const at::Tensor truth = at::tensor(kTruth, at::kDouble).narrow(0, 0, p);
  const at::Tensor x =
      normal_matrix(seed, stream_of("gate samples"), n, kTokens * kChannels).view({-1, kTokens, kChannels});
  const at::Tensor y = model.at(x, truth.unsqueeze(0)).f +
                       kGateNoise * normal_matrix(seed, stream_of("gate noise"), n, 1).squeeze(1);
  const at::Tensor start = truth + kNear * normal_matrix(seed, stream_of("gate start"), model.atoms, p);
  return distances(model, fitted(model, x, y, start), truth, seed);
}

// log distance against log n over all replicates: slope and its standard error.
struct Slope {
  double slope, error;
};
Slope slope_of(const std::vector<std::pair<double, double>>& points) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, xy = 0, rest = 0;
  for (const auto& [a, b] : points) x += a / n, y += b / n;
  for (const auto& [a, b] : points) xx += (a - x) * (a - x), xy += (a - x) * (b - y);
  const double slope = xy / xx;
  for (const auto& [a, b] : points) rest += std::pow(b - y - slope * (a - x), 2);
  return {slope, std::sqrt(rest / (n - 2) / xx)};
}

void run_gate_samples(std::span<const TrialJob> jobs, const RunContext& context) {
  const c10::NoGradGuard no_grad;
  use_threads(context.threads);
  const Config& c = jobs.front().config;
  const Model model{text(c, "experts"), integer(c, "atoms")};
  const int64_t replicates = integer(c, "replicates");
  std::map<std::string, std::map<int64_t, std::vector<double>>> logs;  // by what and how many samples
  RunProgress progress;
  progress.steps_total = static_cast<int64_t>(kSizes.size()) * replicates;
  for (const int64_t n : kSizes)
    for (int64_t r = 0; r < replicates; ++r) {
      if (context.stop->load()) return;
      const auto seed = static_cast<uint64_t>(integer(c, "seed") * 1000003 + r * 1009 + n);
      for (const auto& [what, value] : replicate(model, n, seed)) logs[what][n].push_back(std::log(value));
      ++progress.steps_done;
      if (context.progress) context.progress(progress);
    }
  for (size_t i = 0; i < jobs.size(); ++i) {
    Outcome out;
    for (const auto& [what, by_size] : logs) {
      std::vector<std::pair<double, double>> points;
      for (const auto& [n, values] : by_size)
        for (const double v : values) points.emplace_back(std::log(static_cast<double>(n)), v);
      const Slope found = slope_of(points);
      out.values[what] = std::exp(arithmetic_mean(by_size.at(integer(jobs[i].config, "samples"))).value);
      out.values[what + "_slope"] = found.slope;
      out.values[what + "_slope_error"] = found.error;
    }
    context.finished(i, out);
  }
}

std::vector<std::string> gate_samples_results() {
  std::vector<std::string> out;
  for (const char* what : {"voronoi", "routing", "expert", "merged_expert", "gate", "function"})
    for (const char* of_it : {"", "_slope", "_slope_error"}) out.push_back(std::string(what) + of_it);
  return out;
}

Config without_samples(Config c) {
  c["samples"] = kSizes.front();
  return c;
}

// A guess by measurement. A step passes some thirty times over short rows, so it takes as long as far more
// arithmetic in products would: kPerNumber for each sample and fitted number, on one core. Two atoms for one
// are a fit that is flat in some directions, and it goes on until kMostSteps or nearly.
double all_flops(const Config& c) {
  constexpr double kPerNumber = 680, kStepsOfOne = 10, kStepsOfTwo = 95;
  const double p = static_cast<double>(integer(c, "atoms") * numbers_of(text(c, "experts")));
  const double steps = integer(c, "atoms") == 1 ? kStepsOfOne : kStepsOfTwo;
  double samples = 0;
  for (const int64_t n : kSizes) samples += static_cast<double>(n);
  return number(c, "replicates") * samples * steps * kPerNumber * p;
}

}  // namespace

extern const Runner runner_gate_samples{
    .name = "gate_samples",
    .summary = "finds the experts of attention again by least squares, with gates and without",
    .keys = gate_samples_keys(),
    .results = gate_samples_results(),
    .check =
        [](const Config& c) {
          if (std::find(kSizes.begin(), kSizes.end(), integer(c, "samples")) == kSizes.end())
            throw usage_error(fmt::format("samples={} is none of the sizes", integer(c, "samples")))
                .hint("100, 316, 1000, 3162 or 10000");
        },
    .flops = [](const Config&) { return 0.0; },  // one run answers for every number of samples
    .stack_key = [](const Config& c) { return canonical(without_samples(c)); },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 100000; },
    .run = run_gate_samples,
    .shared_flops = all_flops,
    .one_core = true};

}  // namespace rankscope
