#include "checkpoint/staging.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace rankscope {
namespace {

constexpr size_t kPerThread = size_t{4} << 20;  // less is not worth a thread
constexpr size_t kMostThreads = 8;

}  // namespace

void copy_in_parallel(std::byte* to, std::span<const std::byte> from) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t count = std::clamp<size_t>(from.size() / kPerThread, 1, std::min(cores, kMostThreads));
  const size_t share = (from.size() + count - 1) / count;
  const auto part = [&](size_t i) {
    const size_t begin = std::min(from.size(), i * share), end = std::min(from.size(), begin + share);
    if (end > begin) std::memcpy(to + begin, from.data() + begin, end - begin);
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < count; ++i) others.emplace_back(part, i);
  part(0);
}

void Staging::copy(std::span<const std::byte> from, const at::Tensor& to) {
  for (int64_t done = 0; done < static_cast<int64_t>(from.size());) {
    Buffer& buffer = buffers_[next_++ % buffers_.size()];
    if (!buffer.bytes.defined())
      buffer.bytes = at::empty({size_}, at::TensorOptions().dtype(at::kByte).pinned_memory(pinned_));
    buffer.free.wait();
    const int64_t count = std::min(size_, static_cast<int64_t>(from.size()) - done);
    copy_in_parallel(reinterpret_cast<std::byte*>(buffer.bytes.data_ptr<uint8_t>()),
                     from.subspan(static_cast<size_t>(done), static_cast<size_t>(count)));
    to.narrow(0, done, count).copy_(buffer.bytes.narrow(0, 0, count), /*non_blocking=*/true);
    buffer.free.record(to);
    done += count;
  }
}

}  // namespace rankscope
