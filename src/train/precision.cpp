#include "train/precision.h"

#include <cmath>

#include "base/error.h"
#include "tensors/torch_compat.h"
#include "train/constructions.h"

namespace rankscope {
namespace {

constexpr double kShare = 0.1;

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    sum += difference * difference;
  }
  return sum;
}

// After one step from zero moments m is the gradient but for a factor.
std::vector<float> first_gradient(const TrialSpec& trial, const std::string& device, bool tf32) {
  const auto stack = make_stack({trial}, {starting_state(trial)}, {.device = device, .tf32 = tf32});
  std::vector<double> losses(1);
  stack->advance(1, losses);
  return stack->state(0).m;
}

}  // namespace

double rounding_in_noise(std::span<const float> exact, std::span<const float> rounded,
                         std::span<const float> other_batch) {
  return std::sqrt(squared_distance(exact, rounded) / squared_distance(exact, other_batch));
}

bool lost_in_noise(double rounding) { return rounding <= kShare; }

Precision precision_for(const std::string& asked, const TrialSpec& trial, const std::string& device) {
  if (asked != "auto" && asked != "fp32" && asked != "tf32")
    throw unknown_name("precision", asked, {"auto", "fp32", "tf32"});
  if (asked == "fp32" || !device_of(device).is_cuda()) return {};
  if (asked == "tf32") return {.tf32 = true};
  TrialSpec other = trial;
  other.data_seed = ~trial.data_seed;
  const double rounding =
      rounding_in_noise(first_gradient(trial, device, false), first_gradient(trial, device, true),
                        first_gradient(other, device, false));
  return {lost_in_noise(rounding), rounding};
}

}  // namespace rankscope
