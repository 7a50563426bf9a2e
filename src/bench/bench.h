// `rankscope bench`: the studies' training step and its attention beside LibTorch and beside what the machine
// could do, all measured in one run. Free of torch, for the program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/table.h"

namespace rankscope {

struct BenchRequest {
  std::string device = "cpu";
  int threads = 0;                      // 0: all cores
  std::string precision = "tf32";       // of products on CUDA: fp32 or tf32
  std::vector<std::string> cases = {};  // parts of names; empty: all but the variants
  bool quick = false;                   // a smaller batch, shorter rounds
  bool growth = false;                  // how the step's time grows instead
  bool processor_time = false;          // of all threads together, where the machine does other work, too
};

/// One line of the table, in milliseconds: a training step of one trial, or one call.
struct BenchRow {
  std::string name;
  double ours = kNone, eager = kNone, best = kNone, limit = kNone;
  double flops = 0, bytes = 0;  // counted, of one step or call
  bool by_bytes = false;        // the limit is the copy rate's, not the matrix rate's
  /// Relative error of loss and gradients against float64: ours, and LibTorch's in our precision.
  double error = kNone, plain_error = kNone;
  std::string fault = {};  // why nothing was timed; empty when both agree
};

/// The time of a step against one quantity, all others fixed.
struct GrowthCurve {
  std::string axis;
  std::vector<int64_t> values;
  std::vector<double> milliseconds;
  double slope = kNone, flops_slope = kNone;  // in log-log, of the time and of the counted arithmetic
};

/// Attention that is not softmax, one way, as sequences get longer; milliseconds a call.
struct VariantCurve {
  std::string form;  // "delta"
  bool backward = false;
  int64_t heads = 0, width = 0;
  std::vector<int64_t> tokens;
  /// composed: the same in chunks, of LibTorch's operations; softmax: the fastest there is, none where a call
  /// would take seconds or more memory than is sensible.
  std::vector<double> ours, composed, softmax, limit;
  std::vector<char> by_bytes;                    // the limit is the copy rate's
  double slope = kNone;                          // of ours, in log-log
  int64_t state_rows = 0;                        // C(width + p, p)
  double crossover = kNone;                      // tokens from which on ours is faster than softmax
  double share = kNone, softmax_share = kNone;   // of the matrix rate, at the longest sequence both have
  double error = kNone, composed_error = kNone;  // relative, against float64
  std::string fault = {};
};

struct BenchResult {
  std::string device, precision, torch;
  int threads = 0;
  bool processor_time = false;
  double matrix_rate = 0, copy_rate = 0;  // FLOP/s of a large product; bytes/s read and written by a copy
  std::vector<BenchRow> rows;
  std::vector<GrowthCurve> growth;
  std::vector<VariantCurve> variants;
};

using BenchProgress = std::function<void(int64_t done, int64_t total, const std::string& what)>;

/// Each case is verified, then timed: medians of several rounds.
BenchResult run_bench(const BenchRequest& request, const BenchProgress& progress);

/// Slope of the least-squares line through (log x, log y).
double log_log_slope(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace rankscope
