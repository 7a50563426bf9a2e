#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "bench/graph.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

constexpr int kPlainRuns = 3;

struct Recording {
  explicit Recording(c10::cuda::CUDAStream on) : stream(on) {}
  c10::cuda::CUDAStream stream;
  at::cuda::CUDAGraph graph;
};

}  // namespace

std::function<void()> captured(const std::string& device, const std::function<void()>& work) {
  const at::Device on = device_of(device);
  if (!on.is_cuda()) return work;
  const auto recording = std::make_shared<Recording>(
      c10::cuda::getStreamFromPool(false, on.has_index() ? on.index() : c10::DeviceIndex(0)));
  finish(device);  // what the work reads was made on another stream
  const c10::cuda::CUDAStreamGuard guard(recording->stream);
  for (int i = 0; i < kPlainRuns; ++i) work();
  recording->stream.synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();  // the graph has a pool of its own
  recording->graph.capture_begin();
  work();
  recording->graph.capture_end();
  return [recording, work] {  // the work keeps what it reads and writes alive
    const c10::cuda::CUDAStreamGuard on_stream(recording->stream);
    recording->graph.replay();
  };
}

void finish(const std::string& device) {
  const at::Device on = device_of(device);
  if (!on.is_cuda()) return;
  const c10::cuda::CUDAGuard guard(on);
  c10::cuda::device_synchronize();
}

}  // namespace rankscope
