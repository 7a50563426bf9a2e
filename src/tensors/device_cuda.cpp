#include "tensors/device.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>

namespace rankscope {

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

}  // namespace rankscope
