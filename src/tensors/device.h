// What a pass asks of CUDA beside tensors: events, a stream for copies, memory. device_cuda.cpp where
// LibTorch has CUDA, device_absent.cpp where it has not; there every call is as good as done when it returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/tensor_fwd.h"

namespace rankscope {

/// A point in the work of a stream. The stream is the one torch launches on now, on the tensor's device.
class DeviceEvent {
 public:
  DeviceEvent();
  DeviceEvent(DeviceEvent&&) noexcept;
  DeviceEvent& operator=(DeviceEvent&&) noexcept;
  ~DeviceEvent();

  void record(const at::Tensor& on);           // behind everything the stream was given
  void wait() const;                           // the caller waits for it
  void hold_back(const at::Tensor& on) const;  // the stream waits for it, the caller does not

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // nullptr before it is recorded
};

}  // namespace rankscope
