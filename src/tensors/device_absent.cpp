#include "tensors/device.h"

namespace rankscope {

struct DeviceEvent::Impl {};
DeviceEvent::DeviceEvent() = default;
DeviceEvent::DeviceEvent(DeviceEvent&&) noexcept = default;
DeviceEvent& DeviceEvent::operator=(DeviceEvent&&) noexcept = default;
DeviceEvent::~DeviceEvent() = default;
void DeviceEvent::record(const at::Tensor&) {}
void DeviceEvent::wait() const {}
void DeviceEvent::hold_back(const at::Tensor&) const {}

}  // namespace rankscope
