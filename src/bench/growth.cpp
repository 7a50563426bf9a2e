#include "bench/growth.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/stats.h"
#include "bench/training_case.h"
#include "train/stack.h"

namespace rankscope {
namespace {

struct Axis {
  const char* name;
  int64_t first, last;  // doubling
  int64_t StepShape::*value;
};

// Everything else as in the study: one layer of 8 modules, 8 heads, d = 64, 16 tokens.
constexpr Axis kAxes[] = {{"tokens", 4, 256, &StepShape::tokens},
                          {"width", 16, 256, &StepShape::d},
                          {"heads", 1, 64, &StepShape::heads},
                          {"stack", 1, 64, &StepShape::stack}};

}  // namespace

std::vector<std::string> growth_axes() {
  std::vector<std::string> names;
  for (const Axis& a : kAxes) names.emplace_back(a.name);
  return names;
}

double log_log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto logs = [](std::vector<double> values) {
    for (double& v : values) v = std::log(v);
    return values;
  };
  return least_squares_slope(logs(x), logs(y));
}

GrowthCurve measure_growth(const Machine& machine, const std::string& axis, const BenchProgress& progress) {
  GrowthCurve curve;
  curve.axis = axis;
  for (const Axis& a : kAxes) {
    if (a.name != axis) continue;
    StepShape shape{.modules = 8, .heads = 8, .batch = machine.quick ? 32 : 256};
    int64_t last = a.last;  // a stack only as far as the device takes one
    if (axis == "stack") last = std::min(last, stack_limit(trials_of(shape).front(), machine.device));
    std::vector<double> values, flops;
    for (int64_t value = a.first; value <= last; value *= 2) {
      progress(static_cast<int64_t>(values.size()), 0, fmt::format("{} {}", axis, value));
      shape.*a.value = value;
      const std::vector<TrialSpec> trials = trials_of(shape);
      curve.values.push_back(value);
      curve.milliseconds.push_back(1e3 * our_step(machine, trials));
      values.push_back(static_cast<double>(value));
      flops.push_back(step_flops(trials.front()) * static_cast<double>(trials.size()));
    }
    curve.slope = log_log_slope(values, curve.milliseconds);
    curve.flops_slope = log_log_slope(values, flops);
  }
  return curve;
}

}  // namespace rankscope
