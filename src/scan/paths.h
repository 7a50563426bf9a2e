// `rankscope paths`, whole: what the paths of each length carry. Knows nothing of torch.
#pragma once

#include <string>

#include "scan/scan.h"

namespace rankscope {

struct PathsRequest {
  ScanRequest scan;                  // model, input and arithmetic
  std::string init;                  // a shape at random initialisation instead of a model
  std::string by = "length";         // "length", "layer", "head"
  std::string semantics = "frozen";  // "frozen", "rerun", "subpaths"
  bool grade_mlp = false;            // count MLPs as parts of their own
  bool grade_norm = false;           // and norms, as what they do beyond passing on
  int64_t paths = 20;                // rerun, subpaths: paths in a draw, all different
  int64_t repeats = 5;               // draws: what the error bars are made of
};

/// Rows carry the reading as their variant: "full"; "only:3", the paths of length 3 alone; "upto:3", those of
/// at most 3 with the bias; "allbut:3", the output without them; "bias"; "mlp:2" and "norm:2" where those are
/// graded; "through" with a layer, and perhaps a head. Metrics: those of the lenses residual and spectra,
/// path_norm, path_norm_share, and output_kl where the model has a head.
ScanResult measure_paths(const PathsRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
