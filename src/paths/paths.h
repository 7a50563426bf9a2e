// `rankscope paths`, whole: what the paths of each length carry. Knows nothing of torch.
#pragma once

#include <string>

#include "pass/request.h"

namespace rankscope {

struct PathsRequest {
  ScanRequest scan;           // model, input and arithmetic
  std::string init;           // a shape at random initialisation instead of a model; scan.init is not read
  std::string by = "length";  // "length", "layer", "head"
  std::string semantics = "frozen";  // "frozen", "rerun", "subpaths"
  bool grade_mlp = false;            // count MLPs as parts of their own
  bool grade_norm = false;           // and norms, as what they do beyond passing on
  int64_t paths = 20;                // rerun, subpaths: paths in a draw, all different
  int64_t repeats = 5;               // draws: what the error bars are made of
  bool chained = false;              // attention matrices multiplied along sampled paths instead
  int64_t chains = 100;              // chained: different paths of each length, each on one text
  bool reference_order = false;      // chained: P_1 ... P_k as published, not P_k ... P_1
};

/// Rows carry the reading as their variant and the length as their depth: "only", the paths of that length
/// alone; "upto", those of at most that length with the bias; "allbut", the output without them; "mlp" and
/// "norm", by how many of those, where they are graded; "through", of a layer and perhaps a head, with a
/// length or of all lengths; "full" and "bias", of none; "rerun" or "subpaths" for those semantics. Metrics:
/// those of the lenses residual and spectra, path_norm (root mean square), path_share (of the sum of the
/// norms), and output_kl where the model has a head. By layer also path_alpha, the share of the stream in
/// stream and attention, N(x) / (N(x) + N(attn)) with N = ||.||_1 ||.||_inf. "chained": path_rank1_distance
/// of the product of attention matrices, the median and its _q1 and _q3, path_published and its ratio.
ScanResult measure_paths(const PathsRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
