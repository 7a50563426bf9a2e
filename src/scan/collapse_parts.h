// The halves of `rankscope collapse`: curves by split arithmetic, the theory beside them, what was published.
#pragma once

#include <string>
#include <vector>

#include "model/batch.h"
#include "model/weights.h"
#include "scan/collapse.h"

namespace rankscope {

/// Where the residual of a depth is: 0 is the embeddings.
std::string collapse_site(int depth);
int collapse_layer(int depth);

/// The rows of the lens residual (all tokens) for every variant and depth, in split arithmetic, with
/// residual_l1inf_rel_log10 for what no double can hold. `batches` hold one sample each.
void split_curves(const std::vector<CollapseVariant>& variants, WeightSource& source,
                  const std::vector<Batch>& batches, ResultTable& table, const ProgressCallback& progress);

/// The cubic bound at every layer of pure attention (no skip, MLP or norm) on one sample, as rows of the
/// variant "theory", and what it says in words.
std::vector<Finding> collapse_theory(const ModelSpec& spec, WeightSource& source, const Batch& batch,
                                     ResultTable& table);

struct PublishedPoint {
  double value = kNone, largest_std = kNone;
};
/// The curve of Dong, Cordonnier and Loukas for a model ("bert"), its weights ("init", "pretrained") and one
/// of their variants, by depth; empty where there is none. Depths they do not resolve are NaN.
std::vector<PublishedPoint> published_collapse(const std::string& model, const std::string& weights,
                                               const std::string& variant);

}  // namespace rankscope
