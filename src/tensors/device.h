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

  void record(const at::Tensor& on);  // behind everything the stream was given
  bool recorded() const { return impl_ != nullptr; }
  void wait() const;                           // the caller waits for it
  void hold_back(const at::Tensor& on) const;  // the stream waits for it, the caller does not

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // nullptr before it is recorded
};

/// Runs `work` with a stream of its own for copies to and from the device, beside the one that computes.
void on_copy_stream(const std::string& device, const std::function<void()>& work);

/// Runs `work`, which reads `from`, beside what torch is given next on that device: on one of a few streams
/// that take turns, after everything given so far. Who uses what it made waits for the event. Where memory is
/// limited there is one stream for all, because each keeps what it gave back for itself.
DeviceEvent beside(const at::Tensor& from, const std::function<void()>& work);

/// The tensor, made on another stream, is used by the one torch launches on now: its memory is not given away
/// before that is through with it.
void used_here(const at::Tensor& made_elsewhere);

/// Bytes of the device's memory: those that nobody has taken, within what this process may take, and all
/// there are. 0 on the CPU.
struct DeviceMemory {
  int64_t free = 0, total = 0;
};
DeviceMemory device_memory(const std::string& device);

/// From now on this process takes at most so many bytes there, as --device-memory asks; 0: all there is.
void limit_device_memory(const std::string& device, int64_t bytes);

/// Gives back what is kept for reuse.
void release_device_memory();

}  // namespace rankscope
