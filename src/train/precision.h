// Which precision products on CUDA need: decided by the error that is measured, not by the time it saves.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "train/stack.h"

namespace rankscope {

struct Precision {
  bool tf32 = false;
  /// How far TF32 moves the trial's first gradient, in units of what another batch does; NaN where nobody had
  /// to know.
  double rounding = std::numeric_limits<double>::quiet_NaN();
};

/// Distance of the rounded from the exact gradient over that of another batch's gradient.
double rounding_in_noise(std::span<const float> exact, std::span<const float> rounded,
                         std::span<const float> other_batch);

/// Whether rounding moves a gradient by less than a tenth of what drawing another batch does: then it is lost
/// in a noise that training averages out anyway.
bool lost_in_noise(double rounding);

/// What "fp32", "tf32" or "auto" mean for this trial. For "auto" it takes the first step in float32 and in
/// TF32, and in float32 on another batch, and compares their gradients. Off CUDA products are float32.
Precision precision_for(const std::string& asked, const TrialSpec& trial, const std::string& device);

}  // namespace rankscope
