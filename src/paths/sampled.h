// Paths run again (operator/rerun.h), a few of each length at a time, with error bars from draw to draw.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/batch.h"
#include "operator/rerun.h"
#include "paths/paths.h"

namespace rankscope {

class SampledPaths {
 public:
  SampledPaths(const PathsRequest& request, Semantics semantics, const ModelSpec& spec, WeightSource& source)
      : request_(request), semantics_(semantics), spec_(spec), source_(source) {}

  void see(const Batch& batch);
  /// One row a metric: the mean over draws of the mean over samples, and the standard error over draws; zero
  /// where one draw holds every path there is.
  void finish(ResultTable& table, std::vector<std::string>& notes);

 private:
  using Values = std::map<std::pair<std::string, std::string>, std::vector<double>>;  // metric, tokens
  const PathsRequest& request_;
  Semantics semantics_;
  const ModelSpec& spec_;
  WeightSource& source_;
  std::map<int64_t, std::vector<Values>> draws_;  // by length
  std::map<int64_t, bool> exhaustive_;
};

}  // namespace rankscope
