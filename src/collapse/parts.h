// The parts of `rankscope collapse`: curves by split arithmetic, what holds the rank up, the theory beside
// them, what was published.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/stats.h"
#include "collapse/collapse.h"
#include "model/batch.h"
#include "tensors/weights.h"

namespace rankscope {

/// Where the residual of a depth is: 0 is the embeddings.
std::string collapse_site(int depth);
int collapse_layer(int depth);

/// The rows of the lens residual (all tokens) for every variant and depth, in split arithmetic, with
/// residual_l1inf_rel_log10 for what no double can hold. `batches` hold one sample each.
void split_curves(const std::vector<CollapseVariant>& variants, WeightSource& source,
                  const std::vector<Batch>& batches, ResultTable& table, const ProgressCallback& progress);

/// The same curves of several networks as one table: each value the mean over networks its metric asks for,
/// with the standard error over them; sample i of network k is sample k * texts + i.
ResultTable over_networks(const std::vector<ResultTable>& tables, int64_t texts);

/// residual_l1inf_rel of a variant at a depth: the mean over all samples and how far they scatter.
struct Spread {
  Estimate mean{kNone, kNone};  // the error over networks, or over texts where there is one network
  int64_t draws = 0;            // networks, or texts
  double texts_sd = kNone;      // within a network
  double networks_sd = kNone;   // of the networks' means
};
Spread spread_of(const ResultTable& table, const std::string& variant, int depth, int64_t texts);

/// The cubic bound at every layer of pure attention (no skip, MLP or norm) on one sample, as rows of the
/// variant "theory"; its hypotheses at the tokens of the network as it is, as rows of a variant of that name;
/// and what they say in words. `of_what` is what the sentences call the sample: they speak of no other.
std::vector<Finding> collapse_theory(const ModelSpec& spec, WeightSource& source, const Batch& batch,
                                     std::string_view of_what, ResultTable& table);

/// What the curves were computed in, and what of them is rounding.
struct CollapseArithmetic {
  std::string name;
  bool positions = false;  // taken out, too
  double floor = 0;        // residuals below are rounding; 0 where there is none
};
/// What each part does to the last residual, by pairs of variants that differ in it alone.
void who_holds_the_rank_up(const ModelSpec& spec, const std::vector<CollapseVariant>& variants,
                           const CollapseArithmetic& how, const ResultTable& table,
                           std::vector<Finding>& verdict);

struct PublishedPoint {
  double value = kNone, largest_std = kNone;
};
/// The curve of Dong, Cordonnier and Loukas for a model ("bert"), its weights ("init", "pretrained") and one
/// of their variants, by depth; empty where there is none. Depths they do not resolve are NaN.
std::vector<PublishedPoint> published_collapse(const std::string& model, const std::string& weights,
                                               const std::string& variant);

/// Below this the published curves are float32's rounding, not the network.
constexpr double kPublishedFloor = 5e-7;

/// How far the published networks at initialisation are from each other: their four variants are four draws,
/// and at depth 0, where nothing is taken out yet, draws of the same thing.
double published_networks_sd(const std::string& model);

/// Which published values are within reach: a published curve is one network, drawn without a seed, so it may
/// be as far from the mean of ours as networks are from each other, ours or theirs, or as its own texts
/// scatter.
struct PublishedTally {
  double theirs_sd = 0;
  int cells = 0, inside = 0;
  std::vector<std::string> outside;
  double reach(const PublishedPoint& p, double networks_sd) const;
  void add(const std::string& cell, const PublishedPoint& p, double ours, double networks_sd);
  Finding said(int64_t networks) const;
};

}  // namespace rankscope
