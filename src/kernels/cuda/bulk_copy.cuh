// Whole blocks of memory to shared memory by the copy engine: one thread asks, and a barrier in shared memory
// flips its phase when all bytes are there.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

class ArrivalBarrier {
 public:
  /// One thread calls it, before anybody else uses the barrier and before the block's next __syncthreads.
  __device__ __forceinline__ void set_up() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address()) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  /// One thread calls it: so many bytes will come in this phase.
  __device__ __forceinline__ void expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes)
                 : "memory");
  }
  /// Brings `bytes`, a multiple of 16, from and to multiples of 16.
  __device__ __forceinline__ void bring(float* shared, const float* global, uint32_t bytes) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
        "l"(global), "r"(bytes), "r"(address())
        : "memory");
  }
  /// Until phase 0, 1, 0, ... has come to its end.
  __device__ __forceinline__ void wait(uint32_t phase) {
    uint32_t done = 0;
    while (done == 0)
      asm volatile(
          "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.b32 %0, 1, 0, "
          "p;\n}"
          : "=r"(done)
          : "r"(address()), "r"(phase)
          : "memory");
  }

 private:
  __device__ __forceinline__ uint32_t address() {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&state_));
  }
  uint64_t state_;
};

}  // namespace rankscope::cuda
