// From global to shared memory without passing through registers: 16 bytes each, in groups that are waited
// for in the order they were committed.
#pragma once

namespace rankscope::cuda {

__device__ __forceinline__ void copy_async(float* shared, const float* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}

/// Of the 16 bytes only the first `bytes` are read; zeros for the others.
__device__ __forceinline__ void copy_async(float* shared, const float* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(bytes)
               : "memory");
}

/// One float, or a zero where it is not `there`.
__device__ __forceinline__ void copy_async_one(float* shared, const float* global, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(there ? 4 : 0)
               : "memory");
}

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Until at most N groups are still on their way.
template <int N>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace rankscope::cuda
