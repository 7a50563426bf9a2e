#include "tensors/device.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "tensors/device_choice.h"

namespace rankscope {
namespace {

// The device's number; -1 on the CPU.
c10::DeviceIndex index_of(const std::string& device) {
  const at::Device d = device_of(device);
  if (!d.is_cuda()) return -1;
  return d.has_index() ? d.index() : c10::DeviceIndex(0);
}

// One for each device, for good: memory that one stream gave back is the next copy's.
c10::cuda::CUDAStream copy_stream(c10::DeviceIndex index) {
  static std::mutex lock;
  static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
  const std::lock_guard<std::mutex> held(lock);
  const auto it = streams.find(index);
  if (it != streams.end()) return it->second;
  return streams.emplace(index, c10::cuda::getStreamFromPool(/*isHighPriority=*/true, index)).first->second;
}

// One of the few of a device. Eight of sixteen blocks each fill a large one; more would only keep more
// memory.
c10::cuda::CUDAStream next_side_stream(c10::DeviceIndex index) {
  constexpr size_t kStreams = 8;
  struct Some {
    std::vector<c10::cuda::CUDAStream> streams;
    size_t turn = 0;
  };
  static std::mutex lock;
  static std::map<c10::DeviceIndex, Some> known;
  const std::lock_guard<std::mutex> held(lock);
  Some& some = known[index];
  while (some.streams.size() < kStreams)
    some.streams.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index));
  return some.streams[some.turn++ % kStreams];
}

std::map<c10::DeviceIndex, int64_t>& limits() {
  static std::map<c10::DeviceIndex, int64_t> bytes;
  return bytes;
}

}  // namespace

struct DeviceEvent::Impl {
  at::cuda::CUDAEvent event;
};
DeviceEvent::DeviceEvent() = default;
DeviceEvent::DeviceEvent(DeviceEvent&&) noexcept = default;
DeviceEvent& DeviceEvent::operator=(DeviceEvent&&) noexcept = default;
DeviceEvent::~DeviceEvent() = default;

void DeviceEvent::record(const at::Tensor& on) {
  if (!on.is_cuda()) return;
  if (!impl_) impl_ = std::make_unique<Impl>();
  impl_->event.record(at::cuda::getCurrentCUDAStream(on.device().index()));
}

void DeviceEvent::wait() const {
  if (impl_) impl_->event.synchronize();
}

void DeviceEvent::hold_back(const at::Tensor& on) const {
  if (impl_ && on.is_cuda()) impl_->event.block(at::cuda::getCurrentCUDAStream(on.device().index()));
}

void on_copy_stream(const std::string& device, const std::function<void()>& work) {
  const c10::DeviceIndex index = index_of(device);
  if (index < 0) return work();
  const c10::cuda::CUDAStreamGuard guard(copy_stream(index));
  work();
}

DeviceEvent beside(const at::Tensor& from, const std::function<void()>& work) {
  DeviceEvent done;
  if (!from.is_cuda() || limits()[from.device().index()] > 0) {
    work();
    return done;
  }
  DeviceEvent so_far;
  so_far.record(from);
  const c10::cuda::CUDAStreamGuard guard(next_side_stream(from.device().index()));
  so_far.hold_back(from);
  used_here(from);
  work();
  done.record(from);
  return done;
}

void used_here(const at::Tensor& made_elsewhere) {
  if (made_elsewhere.is_cuda())
    made_elsewhere.record_stream(at::cuda::getCurrentCUDAStream(made_elsewhere.device().index()).unwrap());
}

DeviceMemory device_memory(const std::string& device) {
  const c10::DeviceIndex index = index_of(device);
  if (index < 0) return {};
  const c10::cuda::CUDAGuard guard(index);
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return {};
  const int64_t limit = limits()[index];
  const auto left = static_cast<int64_t>(free);
  return {limit > 0 ? std::min(limit, left) : left, static_cast<int64_t>(total)};
}

void limit_device_memory(const std::string& device, int64_t bytes) {
  const c10::DeviceIndex index = index_of(device);
  if (index < 0) return;
  static_cast<void>(at::empty({1}, at::TensorOptions().device(at::kCUDA, index)));  // wakes the allocator
  limits()[index] = bytes;
  const auto total = static_cast<double>(device_memory(device).total);
  const double share = bytes > 0 && total > 0 ? std::min(1.0, static_cast<double>(bytes) / total) : 1.0;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(share, index);
}

void release_device_memory() { c10::cuda::CUDACachingAllocator::emptyCache(); }

CudaFound find_cuda() {
  using enum CudaFound::Fault;
  CudaFound found;
  const cudaError_t answer = cudaGetDeviceCount(&found.devices);
  if (answer == cudaSuccess && found.devices > 0) {
    found.fault = none;
    return found;
  }
  static_cast<void>(cudaGetLastError());  // it is told here, not by the next call
  found.devices = 0;
  static_cast<void>(cudaDriverGetVersion(&found.driver));
  static_cast<void>(cudaRuntimeGetVersion(&found.needed));
  found.said = cudaGetErrorString(answer);
  found.fault = answer == cudaErrorInsufficientDriver ? found.driver == 0 ? no_driver : old_driver
                : answer == cudaErrorNoDevice || answer == cudaSuccess ? no_device
                                                                       : other;
  return found;
}

}  // namespace rankscope
