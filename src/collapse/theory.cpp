#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "collapse/parts.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "operator/attention_bound.h"
#include "operator/split.h"
#include "spec/edit.h"
#include "tensors/norm.h"
#include "theory/collapse_bound.h"

namespace rankscope {
namespace {

constexpr double kTenth = std::numbers::log10e;

std::string power_of_ten(double log10) { return log10 == -INFINITY ? "0" : fmt::format("10^{:.0f}", log10); }

Finding said(std::string sentence, double value, double threshold, bool known = true) {
  Finding f;
  f.topic = "theory";
  f.sentence = std::move(sentence);
  f.known = known;
  f.value = value;
  f.threshold = threshold;
  return f;
}

void bound_rows(const AttentionBound& b, const std::string& variant, int layer, ResultTable& table) {
  const auto row = [&](const char* metric, double value) {
    table.rows.push_back(
        {variant, fmt::format("blocks.{}.attn", layer), layer, -1, metric, value, kNone, 1, layer, "all"});
  };
  row("bound_score", b.score);
  row("bound_spread", b.spread);
  row("bound_gamma", b.gamma);
  row("bound_beta", b.beta);
  row("bound_c", b.c);
  row("bound_margin", collapse_margin(b.c, b.log_residual));
}

// The theorem's hypotheses at the tokens that attention reads with every part in its place. Skips keep tokens
// apart there, so plain float64 is enough.
Finding hypotheses_as_it_is(const ModelSpec& spec, WeightSource& source, const Batch& batch,
                            std::string_view of_what, ResultTable& table) {
  at::Tensor x = embed(batch, spec, source.load("embed"), source);
  BlockObserver nobody;
  int scores = 0, shrinks = 0;
  double least = INFINITY, most = 0;
  for (int l = 0; l < static_cast<int>(spec.depth()); ++l) {
    const BlockSpec& block = spec.blocks[static_cast<size_t>(l)];
    const Weights weights = source.load(fmt::format("blocks.{}", block.weights));
    const BranchSpec& branch = *block.attention_branch();
    const AttentionBound b = attention_bound(
        SplitTokens(apply_norm(x, branch.before, weights, branch.norm_name)), block.attention(), weights);
    bound_rows(b, "theory, network as it is", l, table);
    scores += b.spread <= kSpreadLimit;
    shrinks += collapse_margin(b.c, b.log_residual) < 1;
    least = std::min(least, b.spread);
    most = std::max(most, b.spread);
    x = run_block(x, {BlockPlan(block, spec.width), weights, batch, nobody});
  }
  return said(
      fmt::format(
          "of {} with every part in its place: without what all queries share, scores range over {:.2g} to "
          "{:.2g} along a row, and the precondition holds in {} of {} layers; sqrt(c) r is below 1 in {}",
          of_what, least, most, scores, spec.depth(), shrinks),
      most, kSpreadLimit);
}

}  // namespace

std::vector<Finding> collapse_theory(const ModelSpec& spec, WeightSource& source, const Batch& batch,
                                     std::string_view of_what, ResultTable& table) {
  if (!std::all_of(spec.blocks.begin(), spec.blocks.end(), bound_applies))
    return {
        said("the cubic bound does not speak of this attention: it needs softmax over all tokens in every "
             "block, without a mask, positions inside the scores or a gate",
             kNone, kNone, false)};
  const ModelSpec pure = without(spec, "skip+mlp+norm");
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
    bound_rows(b, "theory", l, table);
    row("bound_log10", bound * kTenth);
    row("bound_measured_log10", measured * kTenth);
    row("bound_slack_log10", (bound - measured) * kTenth);
    gamma = std::max(gamma, b.gamma);
    beta = std::max(beta, b.beta);
    slack = std::max(slack, measured - bound);
    holds += b.spread <= kSpreadLimit;
  }
  const AttentionSpec& a = pure.blocks.front().attention();
  const double c =
      cubic_constant(gamma, beta, static_cast<double>(a.heads), a.scale, static_cast<double>(batch.tokens()));
  const double margin = collapse_margin(c, log_r0);
  std::vector<Finding> out;
  const std::string measured = power_of_ten(tokens.residual().log_l1inf * kTenth);
  std::string chain;
  if (margin >= 1)
    chain = fmt::format(
        "of {} the cubic bound says nothing at this size: sqrt(c) r0 = {:.2g}, and only "
        "below 1 it shrinks (c = {:.2g}, beta = {:.2g}, gamma = {:.2g}, r0 = {:.2g})",
        of_what, margin, c, beta, gamma, std::exp(log_r0));
  else if (holds < pure.depth())  // a chain of layers is proved where each of them is
    chain = fmt::format(
        "of {} the cubic bound is not proved: sqrt(c) r0 = {:.2g} is below 1, where it would "
        "shrink, but its precondition fails in {} of {} layers; measured {} after them",
        of_what, margin, pure.depth() - holds, pure.depth(), measured);
  else
    chain = fmt::format(
        "of {} the cubic bound holds and shrinks: sqrt(c) r0 = {:.2g} is below 1; after {} "
        "layers it allows {}, measured {}",
        of_what, margin, pure.depth(),
        power_of_ten(log_collapse_bound(c, log_r0, static_cast<int>(pure.depth())) * kTenth), measured);
  out.push_back(said(std::move(chain), margin, 1.0));
  const bool all_zero = slack == -INFINITY;
  const std::string above =
      all_zero ? fmt::format("of {} in every layer the measured residual is 0", of_what)
               : fmt::format(
                     "of {} layer by layer the bound is above the measured residual by a factor of at least "
                     "10^{:.1f}",
                     of_what, -slack * kTenth);
  out.push_back(said(fmt::format("{}; its precondition (scores without what all queries share, within 1.26 "
                                 "along a row) holds in {} of {} layers",
                                 above, holds, pure.depth()),
                     all_zero ? kNone : -slack * kTenth, kNone));
  out.push_back(hypotheses_as_it_is(spec, source, batch, of_what, table));
  return out;
}

}  // namespace rankscope
