// How the time of a scan grows with tokens, layers, heads and samples, one at a time, beside the growth of
// the forward pass's FLOPs: slopes in log-log over the last three points, where start-up no longer counts.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "gpu_scans.h"

namespace rankscope {

/// Llama's shape, small enough that every point is a few seconds at most.
struct SlopePoint {
  int64_t samples = 8, tokens = 512, layers = 8, heads = 16;
};

struct SlopeAxis {
  std::string name;
  int64_t SlopePoint::*field;
  std::vector<int64_t> values;
};

inline std::vector<SlopeAxis> slope_axes() {
  return {{"tokens", &SlopePoint::tokens, {128, 256, 512, 1024, 2048, 4096}},
          {"layers", &SlopePoint::layers, {4, 8, 16, 32}},
          {"heads", &SlopePoint::heads, {4, 8, 16, 32}},
          {"samples", &SlopePoint::samples, {4, 8, 16, 32}}};
}

/// Heads share a width of 1,024: more of them are narrower, and the FLOPs stay.
inline ScanCase case_of(const SlopePoint& p) {
  return {"",
          test::llama_config(1024, p.layers, p.heads, p.heads, 2816, 1000),
          StoredType::f16,
          p.samples,
          p.tokens,
          0,
          0};
}

/// Least squares over the last three points of two lists that are positive.
inline double last_slope(const std::vector<int64_t>& x, const std::vector<double>& y) {
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  const size_t from = x.size() - 3;
  for (size_t i = from; i < x.size(); ++i)
    mean_x += std::log(static_cast<double>(x[i])) / 3, mean_y += std::log(y[i]) / 3;
  for (size_t i = from; i < x.size(); ++i) {
    const double off = std::log(static_cast<double>(x[i])) - mean_x;
    xy += off * (std::log(y[i]) - mean_y);
    xx += off * off;
  }
  return xy / xx;
}

inline int scan_slopes(const std::string& device) {
  fmt::print(
      "Width 1,024; unless it is the one that grows: 8 samples, 512 tokens, 8 layers, 16 heads. Seconds of "
      "the\n"
      "second scan of a process, every metric; slopes in log-log over the last three points.\n");
  for (const SlopeAxis& axis : slope_axes()) {
    std::vector<double> times, flops;
    for (const int64_t value : axis.values) {
      SlopePoint p;
      p.*axis.field = value;
      const ScanCase c = case_of(p);
      const TemporaryFolder folder;
      test::write_random_checkpoint(folder.path(), c.config, c.stored, 0.02);
      scan(request_of(c, folder.path(), device, 1), {});
      times.push_back(seconds([&] { scan(request_of(c, folder.path(), device, 2), {}); }));
      flops.push_back(static_cast<double>(c.samples) *
                      forward_flops(spec_from_config(c.config, "config.json"), c.tokens));
    }
    fmt::print("{:<8}", axis.name);
    for (const int64_t value : axis.values) fmt::print("{:>8}", value);
    fmt::print("{:>8}\n{:<8}", "slope", "scan, s");
    for (const double t : times) fmt::print("{:>8.3f}", t);
    fmt::print("{:>8.2f}\n{:<8}", last_slope(axis.values, times), "TFLOP");
    for (const double f : flops) fmt::print("{:>8.3f}", f / 1e12);
    fmt::print("{:>8.2f}\n", last_slope(axis.values, flops));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace rankscope
