// `rankscope collapse`, whole: every combination of parts on the same texts, and who holds the rank up. Knows
// nothing of torch.
#pragma once

#include <string>
#include <vector>

#include "pass/request.h"

namespace rankscope {

constexpr int64_t kMostNetworks = 1000;  // of a request

struct CollapseRequest {
  ScanRequest scan;    // model and input
  std::string init;    // a shape at random initialisation instead of a model; scan.init is not read
  std::string preset;  // "factorial", "paper", "published"; empty: by the arithmetic
  std::string arithmetic = "float32";  // "float32", "float64", "split"
  int64_t networks = 1;      // of a shape: drawn with seed, seed + 1, ...; the same for every variant
  bool frozen_norm = false;  // a third kind of norm: statistics held at the whole network's
  bool positions = false;    // a further factor: positions left out
  bool minimiser = false;    // residuals at the norms' own minimisers, too
  bool theory = true;        // the cubic bound, evaluated beside the curves
};

/// One network of the experiment: a name and the parts it lacks ("norm-statistics": the norms' own, held at
/// what the whole network gave at the same place). Presets named after the paper: SAN, SAN+MLP, SAN+skip,
/// transformer; as published, ALBERT keeps the activation, the skip and the norm of its MLP.
struct CollapseVariant {
  std::string name;
  ModelSpec spec;
  bool attention_skip = true, norm = true;
  int mlp = 2;  // 2: with its skip, 1: without, 0: off
  bool held_norms = false, positions = true;
  bool operator==(const CollapseVariant&) const = default;
};
struct Factors {
  bool frozen_norm = false, positions = false;  // those nobody gets without asking
};
std::vector<CollapseVariant> collapse_variants(const ModelSpec& spec, const std::string& preset,
                                               Factors factors = {});

/// Rows of the lens residual at every depth, with: residual_l1inf_rel_mean, the arithmetic mean the paper
/// plots, and its standard deviations _sd_texts (over texts, within a network) and _sd_networks;
/// residual_l1inf_rel_log10 (split: below the smallest double) and _decades, how many orders of magnitude are
/// lost; local_exponent, 3 for the cubic law and 1 for a geometric one; published, published_sd (the largest
/// of its curve) and published_ratio where the paper has the curve; noise_floor of the variant "float32
/// rounding"; bound_* of the variants "theory" (attention alone) and "theory, network as it is".
ScanResult measure_collapse(const CollapseRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
