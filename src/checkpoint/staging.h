// Bytes of the host on their way to a device: two pinned buffers take turns, one is filled by several threads
// while the other is copied.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/tensor_fwd.h"
#include "tensors/device.h"

namespace rankscope {

/// memcpy by several threads: one does not fill a bus.
void copy_in_parallel(std::byte* to, std::span<const std::byte> from);

class Staging {
 public:
  /// Pinned where the device needs it; the buffers are made when the first bytes come.
  Staging(bool pinned, int64_t buffer_bytes) : pinned_(pinned), size_(buffer_bytes) {}

  /// Copies to `to` [n] bytes, on the stream torch launches on now; `from` may go when this returns.
  void copy(std::span<const std::byte> from, const at::Tensor& to);

 private:
  struct Buffer {
    at::Tensor bytes;
    DeviceEvent free;  // the last copy out of it
  };
  bool pinned_;
  int64_t size_;
  std::array<Buffer, 2> buffers_;
  size_t next_ = 0;
};

}  // namespace rankscope
