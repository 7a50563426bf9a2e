// How many pairs a state holds: m random unit keys with values of +-1 are stored one after another, and each
// key then asks for its value. Nothing is trained: keys and values are what they are, and a form of attention
// writes and reads them by its own rule. Softmax, which keeps every pair, stands beside.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "base/error.h"
#include "base/stream_name.h"
#include "studies/support/one_by_one.h"
#include "studies/support/patterns.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

constexpr double kSharp = 60;        // inverse temperature of softmax
constexpr double kRounding = 1e-10;  // singular values of a state below this share of the largest are none
const std::vector<std::string> kStates{"linear", "decay", "delta", "gated_delta", "fastmax", "softmax"};

std::vector<Key> recall_keys() {
  return {{"form", std::string("linear"), "how pairs are stored and read", 0, 0, kStates},
          {"d", int64_t{32}, "width of keys and of values", 1, 1024},
          {"pairs", int64_t{32}, "stored, and asked for one by one", 1, 4096},
          {"keep", 0.99, "gated_delta: of the state, with every pair", 1e-6, 1},
          {"draws", int64_t{20}, "of keys and values", 1, 1e6},
          {"seed", int64_t{0}, "of the draws", 0, 1e15}};
}

// [n, m]: what each query takes of each value.
at::Tensor read_by(const Config& c, const at::Tensor& q, const at::Tensor& k) {
  const std::string& form = text(c, "form");
  if (form == "delta") return delta_pattern(q, k, 1);
  if (form == "gated_delta") return delta_pattern(q, k, number(c, "keep"));
  // Second degree of the exponential at the temperature of its scores: sharper ones only make it q . k
  // squared.
  if (form == "fastmax") return made_up_pattern({.variant = "fastmax:p=2", .scale = 8 * kSharp}, q, k);
  return made_up_pattern({.variant = form, .scale = form == "softmax" ? kSharp : 1.0}, q, k);
}

Outcome recall(const Config& c) {
  const c10::NoGradGuard no_grad;
  const int64_t d = integer(c, "d"), m = integer(c, "pairs"), draws = integer(c, "draws");
  double pairs = 0, bits = 0, rank = 0, effective = 0;
  for (int64_t draw = 0; draw < draws; ++draw) {
    const uint64_t seed = static_cast<uint64_t>(integer(c, "seed")) * 1000003 + static_cast<uint64_t>(draw);
    const at::Tensor drawn = normal_matrix(seed, stream_of("recall keys"), m, d),
                     k = drawn / drawn.norm(2, {1}, true),
                     v = at::sign(normal_matrix(seed, stream_of("recall values"), m, d));
    const at::Tensor right = at::sign(at::matmul(read_by(c, k, k), v)).eq(v).to(at::kDouble);
    bits += right.mean().item<double>();
    pairs += std::get<0>(right.min(1)).mean().item<double>();
    if (text(c, "form") == "softmax" || text(c, "form") == "fastmax") continue;
    // Reading is linear in the query, so unit vectors read out the state itself.
    const at::Tensor state = at::matmul(read_by(c, at::eye(d, at::kDouble), k), v);
    rank += rank_above(state, kRounding);
    effective += entropy_rank(state);
  }
  const auto n = static_cast<double>(draws);
  Outcome out;
  out.values = {{"recalled", pairs / n}, {"bits", bits / n}};
  const std::string& form = text(c, "form");
  const auto wide = static_cast<double>(d);
  // Numbers that are kept, whatever comes: a state, its features of second degree with their sums, or all
  // pairs.
  const double features = (wide + 1) * (wide + 2) / 2;
  out.values["state_numbers"] = form == "softmax"   ? 2 * wide * static_cast<double>(m)
                                : form == "fastmax" ? features * (wide + 1)
                                                    : wide * wide;
  if (rank > 0) {
    out.values["state_rank"] = rank / n;
    out.values["state_effective_rank"] = effective / n;
  }
  return out;
}

double recall_flops(const Config& c) {
  return number(c, "draws") * 4 * number(c, "pairs") * number(c, "pairs") * number(c, "d");
}

void run_recall(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  run_one_by_one(jobs, context, recall_flops, recall);
}

}  // namespace

extern const Runner runner_recall{
    .name = "recall",
    .summary = "stores random pairs in a state and asks for them",
    .keys = recall_keys(),
    .results = {"recalled", "bits", "state_numbers", "state_rank", "state_effective_rank"},
    .check = [](const Config&) {},
    .flops = recall_flops,
    .run = run_recall};

}  // namespace rankscope
