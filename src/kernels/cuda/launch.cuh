// What every CUDA file here needs around a launch: sizes, strides, and an error that says which kernel
// failed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "base/error.h"

namespace rankscope::cuda {

constexpr unsigned kWarp = 32;
constexpr unsigned kEveryLane = 0xffffffffu;

inline cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

inline void check(cudaError_t status, const char* kernel) {
  if (status != cudaSuccess)
    throw Error(std::string("CUDA: ") + cudaGetErrorString(status))
        .in(kernel)
        .hint("run on the CPU: --device cpu");
}

/// Throws where the launch just made was refused; what goes wrong while it runs shows at the next call.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

/// How a kernel follows the one before it in its stream. kEarly: it may begin as soon as all blocks of that
/// one have called let_next_start() or are done, and must call wait_for_previous() before it touches anything
/// that kernels before it write or read.
enum class Start { kInOrder, kEarly };

__device__ __forceinline__ void let_next_start() { cudaTriggerProgrammaticLaunchCompletion(); }
__device__ __forceinline__ void wait_for_previous() { cudaGridDependencySynchronize(); }

template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, int bytes, void* stream,
                   const char* name, Start start, const Arguments&... arguments) {
  if (bytes > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = as_stream(stream);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &early;
  config.numAttrs = start == Start::kEarly ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), name);
}

inline unsigned blocks_for(int64_t work, int64_t per_block, const char* kernel) {
  const int64_t blocks = (work + per_block - 1) / per_block;
  if (blocks > 0x7fffffff)
    throw Error("too much work for one launch").in(kernel).hint("use smaller batches or stacks");
  return static_cast<unsigned>(blocks);
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kEveryLane, x, step);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(kEveryLane, x, step));
  return x;
}

}  // namespace rankscope::cuda
