// What the paths of one length know about a task, in three readings of "the paths of length k":
//
//   frozen     the terms of the network's own sum, attention and norm statistics held; exact
//     only       those of length k alone, without any bias
//     upto       those of at most length k, with the bias
//     allbut     all but those of length k
//   rerun      the network run again along single paths, and their states summed (operator/rerun.h)
//   subpaths   the same with the skip kept in every used layer
//     5, 20 ..   so many paths a draw; all: every one there is
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "operator/rerun.h"
#include "tasks/token_task.h"
#include "tensors/weights.h"

namespace rankscope {

constexpr double kFollowed = 5000;  // paths of all lengths: those of six layers with three heads are 4,096

struct PathScore {
  double accuracy = 0;
  double spread = 0;    // standard deviation from draw to draw
  double rms = 0;       // frozen, only: root mean square of the sum over the paths
  double residual = 0;  // frozen, only: relative_residual of the sum
  /// Frozen: sum over lengths of the norms of their sums, over the norm of the sum of all. 1: lengths do not
  /// cancel; large: a length that is left out leaves others without their counterweight.
  double cancellation = 0;
  /// Frozen: the same within the length, over its paths; NaN where the network has more than kFollowed of
  /// them.
  double path_cancellation = std::numeric_limits<double>::quiet_NaN();
  int64_t paths = 0, draws = 1;
};

struct PathDraws {
  int64_t draws = 5;
  bool replacement =
      false;  // as published: a path may be drawn twice, and lengths with few paths are not summed whole
  uint64_t seed = 0;
};

/// ||X - 1 x^T||_F / ||X||_F of each sequence X of x [N, d], with x the mean token: the geometric mean over
/// the sequences.
double relative_residual(const at::Tensor& x, const Batch& batch);

/// Refuses a reading that the semantics does not have.
void check_reading(Semantics semantics, const std::string& reading);

/// How often a single head is run over the set for this reading, of a network with so many layers and heads.
/// The terms of the frozen network need none: they cost nothing beside a training.
double heads_run(Semantics semantics, const std::string& reading, int64_t length, int64_t layers,
                 int64_t heads, const PathDraws& draws);

class PathAccuracy {
 public:
  /// `source` must outlive this; its words are those of samples_of(set).
  PathAccuracy(WeightSource& source, const TokenSet& set, const PathDraws& draws);
  ~PathAccuracy();

  double full() const;  // accuracy of the network itself
  PathScore read(Semantics semantics, const std::string& reading, int64_t length);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope
