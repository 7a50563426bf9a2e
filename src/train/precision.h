// Which precision products on CUDA need: decided by the error that is measured, not by the time it saves.
#pragma once

#include <span>
#include <string>

#include "train/stack.h"

namespace rankscope {

/// Whether rounding moves a gradient by less than a tenth of what drawing another batch does: then it is lost
/// in a noise that training averages out anyway.
bool lost_in_noise(std::span<const float> exact, std::span<const float> rounded,
                   std::span<const float> other_batch);

/// Takes the first step of the trial in float32 and in TF32, and in float32 on another batch, and compares
/// their gradients. Always false off CUDA, where products are float32.
bool tf32_is_enough(const TrialSpec& trial, const std::string& device);

}  // namespace rankscope
