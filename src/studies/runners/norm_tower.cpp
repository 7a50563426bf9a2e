// A tower of attention layers without skips and MLPs that is made, not trained: tokens at the corners of a
// simplex and something that all of them share, keys equal to queries, and a value map that leaves
// differences alone and multiplies what is shared. With LayerNorm behind every layer and a factor below the
// layer's own shrinking, tokens stay apart for ever; without the norm the same tower collapses.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "model/batch.h"
#include "operator/split.h"
#include "studies/support/one_by_one.h"
#include "studies/support/patterns.h"

namespace rankscope {
namespace {

constexpr uint32_t kBasis = 1, kNoise = 2;

std::vector<Key> norm_tower_keys() {
  return {
      {"tokens", int64_t{8}, "of the sequence", 2, 256},
      {"d", int64_t{16}, "width; above tokens + 1, for the corners, what is shared, and the mean", 4, 1024},
      {"beta", 6.0, "score of a whole difference with itself, in nats", 0, 100},
      {"shared", 0.5, "factor of the value map along what all tokens share", 0, 10},
      {"start_spread", 0.8, "relative residual of the first tokens", 1e-6, 1},
      {"noise", 0.01, "added to the corners, of their length", 0, 1},
      {"norm", std::string("layer"), "behind every layer", 0, 0, {"layer", "none"}},
      {"depth", int64_t{12}, "layers passed", 0, 1000},
      {"seed", int64_t{0}, "of the directions and the noise", 0, 1e15}};
}

void check_norm_tower(const Config& c) {
  if (integer(c, "d") < integer(c, "tokens") + 2)
    throw usage_error(
        fmt::format("{} tokens need a width of {}", integer(c, "tokens"), integer(c, "tokens") + 2))
        .hint("a larger d, or fewer tokens");
}

// Orthonormal columns whose entries sum to zero: LayerNorm leaves their span alone.
at::Tensor zero_mean_basis(const Config& c, int64_t columns) {
  const at::Tensor g =
      normal_matrix(static_cast<uint64_t>(integer(c, "seed")), kBasis, integer(c, "d"), columns);
  return std::get<0>(at::linalg_qr(g - g.mean(0)));
}

struct Tower {
  BlockSpec block;
  Weights weights;
  at::Tensor tokens;  // [n, d]
};

Tower tower_of(const Config& c) {
  const int64_t n = integer(c, "tokens"), d = integer(c, "d");
  const auto width = static_cast<double>(d);
  const at::Tensor basis = zero_mean_basis(c, n + 1), u = basis.select(1, 0);
  const at::Tensor eye = at::eye(n, at::kDouble), corners = eye - 1.0 / static_cast<double>(n);
  at::Tensor apart = at::matmul(corners, basis.narrow(1, 1, n).t());  // [n, d], rows sum to zero over tokens
  apart = apart / apart.norm(2, 1, true);
  const at::Tensor noise =
      normal_matrix(static_cast<uint64_t>(integer(c, "seed")), kNoise, n, d) / std::sqrt(width);
  const double spread = number(c, "start_spread");
  Tower out;
  out.tokens = std::sqrt(width) *
               (std::sqrt(1 - spread * spread) * u + spread * apart + spread * number(c, "noise") * noise);
  NormSpec norm{.kind = NormKind::layer, .epsilon = 1e-12};
  norm.off = text(c, "norm") == "none";
  AttentionSpec a;
  a.d_qk = a.d_v = d;
  a.scale = number(c, "beta") / width;
  a.bias = a.output_bias = false;
  out.block = classic_block(NormPlace::post, norm, a, "");
  out.block.attention_branch()->skip = false;
  const at::Tensor I = at::eye(d, at::kDouble);
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_O"}) out.weights.set(name, I);
  out.weights.set("attn.W_V", I - (1 - number(c, "shared")) * at::outer(u, u));
  out.weights.set("ln1.w", at::ones({d}, at::kDouble));
  out.weights.set("ln1.b", at::zeros({d}, at::kDouble));
  return out;
}

Batch one_sample(int64_t tokens) {
  Batch b;
  b.offsets = {0, tokens};
  b.samples = {0};
  for (int64_t i = 0; i < tokens; ++i) b.positions.push_back(i);
  b.types.assign(static_cast<size_t>(tokens), 0);
  b.content.assign(static_cast<size_t>(tokens), 1);
  return b;
}

Outcome solve_norm_tower(const Config& c) {
  const c10::NoGradGuard no_grad;
  const Tower tower = tower_of(c);
  const Batch batch = one_sample(integer(c, "tokens"));
  SplitTokens tokens(tower.tokens);
  double before = 0;
  for (int64_t l = 0; l < integer(c, "depth"); ++l) {
    before = tokens.residual().log_l1inf_rel;
    tokens.advance(tower.block, tower.weights, batch);
  }
  const SplitResidual r = tokens.residual();
  Outcome out;
  out.values["residual_log10"] = r.log_l1inf_rel * std::numbers::log10e;
  out.values["residual"] = std::exp(r.log_l1inf_rel);
  out.values["spread"] = std::exp(r.log_fro_rel);
  out.values["effective_rank"] = entropy_rank(tokens.whole());
  if (integer(c, "depth") > 0) out.values["factor"] = std::exp(r.log_l1inf_rel - before);
  for (auto it = out.values.begin(); it != out.values.end();)
    it = std::isfinite(it->second) ? std::next(it) : out.values.erase(it);
  return out;
}

double norm_tower_flops(const Config& c) {
  const auto n = static_cast<double>(integer(c, "tokens")), d = static_cast<double>(integer(c, "d"));
  const double rank = 2 * n * n * d;
  return static_cast<double>(integer(c, "depth")) * (8 * n * d * d + 4 * n * n * d) + rank;
}

}  // namespace

extern const Runner runner_norm_tower{
    .name = "norm_tower",
    .summary = "follows tokens through a tower of attention layers made so that LayerNorm keeps them apart",
    .keys = norm_tower_keys(),
    .results = {"residual_log10", "residual", "spread", "effective_rank", "factor"},
    .check = check_norm_tower,
    .flops = norm_tower_flops,
    .run = [](std::span<const TrialJob> jobs, const RunContext& context) {
      run_one_by_one(jobs, context, norm_tower_flops, solve_norm_tower);
    }};

}  // namespace rankscope
