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

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Until at most N groups are still on their way.
template <int N>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace rankscope::cuda
