#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "collapse/parts.h"
#include "model/embed_and_unembed.h"
#include "operator/attention_bound.h"
#include "operator/split.h"
#include "spec/edit.h"
#include "theory/collapse_bound.h"

namespace rankscope {
namespace {

constexpr double kTenth = std::numbers::log10e;

Finding said(std::string sentence, double value, double threshold, bool known = true) {
  Finding f;
  f.topic = "theory";
  f.sentence = std::move(sentence);
  f.known = known;
  f.value = value;
  f.threshold = threshold;
  return f;
}

}  // namespace

std::vector<Finding> collapse_theory(const ModelSpec& spec, WeightSource& source, const Batch& batch,
                                     ResultTable& table) {
  if (!std::all_of(spec.blocks.begin(), spec.blocks.end(), bound_applies))
    return {
        said("the cubic bound does not speak of this attention: it needs softmax over all tokens in every "
             "block, without a mask, positions inside the scores or a gate",
             kNone, kNone, false)};
  const ModelSpec pure = without(spec, "attention-skip+mlp+norm");
  SplitTokens tokens(embed(batch, pure, source.load("embed"), source));
  const double log_r0 = tokens.residual().log_l1inf;
  double gamma = 0, beta = 0, slack = -INFINITY;
  int holds = 0;
  for (int l = 0; l < static_cast<int>(pure.depth()); ++l) {
    const BlockSpec& block = pure.blocks[static_cast<size_t>(l)];
    const Weights weights = source.load(fmt::format("blocks.{}", block.weights));
    const AttentionBound b = attention_bound(tokens, block.attention(), weights);
    tokens.advance(block, weights, batch);
    const double measured = tokens.residual().log_l1inf, bound = std::log(b.c) + 3 * b.log_residual;
    const auto row = [&](const char* metric, double value) {
      table.rows.push_back(
          {"theory", fmt::format("blocks.{}.attn", l), l, -1, metric, value, kNone, 1, l, "all"});
    };
    row("bound_score", b.score);
    row("bound_spread", b.spread);
    row("bound_gamma", b.gamma);
    row("bound_beta", b.beta);
    row("bound_c", b.c);
    row("bound_margin", collapse_margin(b.c, b.log_residual));
    row("bound_log10", bound * kTenth);
    row("bound_measured_log10", measured * kTenth);
    row("bound_slack_log10", (bound - measured) * kTenth);
    gamma = std::max(gamma, b.gamma);
    beta = std::max(beta, b.beta);
    slack = std::max(slack, measured - bound);
    holds += b.spread <= kSpreadLimit;
  }
  const AttentionSpec& a = pure.blocks.front().attention();
  const double c = cubic_constant(gamma, beta, static_cast<double>(a.heads), a.scale);
  const double margin = collapse_margin(c, log_r0);
  std::vector<Finding> out;
  out.push_back(said(
      margin < 1
          ? fmt::format(
                "the cubic bound holds and shrinks: sqrt(c) r0 = {:.2g} is below 1; after {} layers it "
                "allows 10^{:.0f}, measured 10^{:.0f}",
                margin, pure.depth(), log_collapse_bound(c, log_r0, static_cast<int>(pure.depth())) * kTenth,
                tokens.residual().log_l1inf * kTenth)
          : fmt::format("the cubic bound says nothing at this size: sqrt(c) r0 = {:.2g}, and only below 1 it "
                        "shrinks (c = {:.2g}, beta = {:.2g}, gamma = {:.2g}, r0 = {:.2g})",
                        margin, c, beta, gamma, std::exp(log_r0)),
      margin, 1.0));
  out.push_back(
      said(fmt::format("layer by layer the bound is above the measured residual by a factor of at least "
                       "10^{:.1f}; its precondition (scores within 1.26 along a row) holds in {} of {} "
                       "layers",
                       -slack * kTenth, holds, pure.depth()),
           -slack * kTenth, kNone));
  return out;
}

}  // namespace rankscope
