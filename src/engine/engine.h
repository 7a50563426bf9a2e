// The border between the program and librankscope.so: the program starts without torch and loads this table
// only for the commands that need it.
#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"
#include "collapse/collapse.h"
#include "paths/operator.h"
#include "paths/paths.h"
#include "scan/scan.h"
#include "scan/site_list.h"
#include "scan/verify.h"
#include "studies/runner.h"

namespace rankscope {

struct LensInfo {
  struct Metric {
    std::string name, formula, meaning, mean;
  };
  std::string name, summary, cost;
  bool on_request = false;
  std::vector<Metric> metrics;
};

struct AttentionInfo {
  struct Option {
    std::string name, otherwise, values, meaning;
  };
  std::string name, summary, rank_law;
  bool rows_sum_to_one = false, shares = false, may_be_causal = false, only_causal = false;
  std::vector<Option> options;
};

struct Engine {
  ScanResult (*scan)(const ScanRequest&, const ProgressCallback&);
  std::vector<LayerError> (*verify)(const VerifyRequest&);
  std::vector<LensInfo> (*lenses)();
  std::vector<AttentionInfo> (*attention)();
  std::vector<SiteLine> (*sites)(const std::filesystem::path& model);
  const std::vector<const Runner*>& (*runners)();
  ScanResult (*paths)(const PathsRequest&, const ProgressCallback&);
  ScanResult (*collapse)(const CollapseRequest&, const ProgressCallback&);
  OperatorResult (*linear_operator)(const OperatorRequest&, const ProgressCallback&);
  BenchResult (*bench)(const BenchRequest&, const BenchProgress&);
};

}  // namespace rankscope

/// Found by name with dlsym; null when the library was built for another version of the program.
extern "C" const rankscope::Engine* rankscope_engine(const char* version);
