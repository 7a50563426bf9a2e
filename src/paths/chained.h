// Attention along sampled paths (operator/chained.h): how far from rank one after how many factors.
#pragma once

#include <vector>

#include "model/batch.h"
#include "operator/rerun.h"
#include "paths/paths.h"

namespace rankscope {

class FrozenNetwork;

/// What medians of lengths 1, 2, ... say: the factor that a further layer takes the distance down by, as long
/// as rounding (below `floor`) has no part in it, and where it has.
Finding chained_rate(const std::vector<double>& medians, double floor);

/// Paths and the text each of them is taken on are drawn beforehand, so that texts can be seen one at a time.
class ChainedPaths {
 public:
  ChainedPaths(const PathsRequest& request, const ModelSpec& spec, int64_t texts);

  void see(const FrozenNetwork& frozen, const Batch& batch);
  /// Rows of the variant "chained": median and quartiles over chains of each length, what was published for
  /// this model beside them. Says by which factor a further layer shrinks the distance.
  Finding finish(ResultTable& table);

 private:
  struct Draw {
    Path path;
    int length;
    int64_t text;
    double distance = kNone;
  };
  void published(ResultTable& table) const;

  const PathsRequest& request_;
  const ModelSpec& spec_;
  std::vector<Draw> draws_;
};

}  // namespace rankscope
