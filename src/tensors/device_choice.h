// Which device a word means, and why it cannot be had: one line each.
#pragma once

#include <string>

#include "tensors/torch_compat.h"

namespace rankscope {

/// What there is of CUDA. device_cuda.cpp asks the driver; device_absent.cpp knows that there is none.
struct CudaFound {
  enum class Fault { none, not_built, no_driver, old_driver, no_device, other } fault = Fault::not_built;
  int devices = 0;
  int driver = 0, needed = 0;  // old_driver: CUDA versions, 12040 for 12.4
  std::string said = {};       // other: what CUDA said
};
CudaFound find_cuda();

/// "cpu", "cuda" or "cuda:1" where `found` has it; otherwise an Error that says what is missing and what to
/// do.
at::Device choose_device(const std::string& name, const CudaFound& found);

}  // namespace rankscope
