// Paths as the published experiments ran them: not the terms of the frozen network, but the network run again
// along one path, its attention recomputed from the path's own state.
//
//   skipped layer   the identity: neither norm nor MLP
//   used layer      one head with the whole output bias, then
//     rerun         no skip; the norm without its gains (post-norm)
//     subpaths      the skip kept, so that the path brings all its sub-paths; the norm whole
//   an MLP          keeps its skip and its norm in every used layer
//
// States of several paths are summed and normalised once more: without gains in post-norm models, by the
// final norm where there is one. With pre-norms a used layer is head(N1 x), with x added under subpaths.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// For each layer the head a path goes through, -1 where it takes the skip.
using Path = std::vector<int>;

enum class Semantics { frozen, rerun, subpaths };
Semantics semantics_of(std::string_view name);  // an unknown one is answered with the nearest

/// `count` different paths of one length, uniformly without replacement, or all of them where there are no
/// more; a function of (seed, draw).
std::vector<Path> sample_paths(int64_t layers, int64_t heads, int64_t length, int64_t count, uint64_t seed,
                               uint32_t draw);

class PathRunner {
 public:
  /// `source` must outlive this. Weights are loaded once, one head at a time is cut out of them.
  PathRunner(const ModelSpec& spec, WeightSource& source, const Batch& batch);
  ~PathRunner();

  /// The state at the end of one path, [N, d], before the last norm.
  at::Tensor run(const Path& path, Semantics semantics) const;
  /// The sum of the states of several paths after the last norm.
  at::Tensor sum(const std::vector<Path>& paths, Semantics semantics) const;
  /// For each length the same over all its paths. Paths share their beginnings: (1 + H)^L applications of one
  /// head at most, whatever the lengths.
  std::vector<at::Tensor> sum_all(Semantics semantics) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope
