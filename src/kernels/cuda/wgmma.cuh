// Hopper's products of a warpgroup (128 threads): 64 rows at once, in TF32, the second factor read from
// shared memory by the tensor cores themselves.
//
// Factors in shared memory are matrices [rows, columns] whose rows run along the contraction, cut into blocks
// of 32 columns (128 bytes a row). In a block the eight 16-byte pieces of a row are swapped about so that
// eight rows meet different banks: piece p of row r stands at p ^ (r % 8). A block starts at a multiple of
// 1024 bytes.
//
// With w the warp of the warpgroup, g = lane / 4 and t = lane % 4, a thread holds
//   accumulator  x[4j], x[4j + 1]   row 16w + g,      columns 8j + 2t and 8j + 2t + 1
//                x[4j + 2], + 3     row 16w + g + 8,  the same
//   first factor a[0], a[2]         row 16w + g,      columns t and t + 4 of a step's 8
//                a[1], a[3]         row 16w + g + 8
#pragma once

#include <cstdint>

namespace rankscope::cuda {

constexpr int kBlockColumns = 32;

/// Where float `column` of `row` stands in blocks of `rows` rows.
__device__ __forceinline__ int swizzled(int row, int column, int rows) {
  const int piece = column % kBlockColumns / 4;
  return column / kBlockColumns * rows * kBlockColumns + row * kBlockColumns + ((piece ^ (row % 8)) * 4) +
         column % 4;
}

/// What the tensor cores are told of a matrix: its first block, in steps of 8 columns.
class Matrix {
 public:
  __device__ __forceinline__ explicit Matrix(const float* blocks)
      : start_((static_cast<uint32_t>(__cvta_generic_to_shared(blocks)) & 0x3ffffu) >> 4) {}
  /// Columns 8 step to 8 step + 7 of a matrix of `rows` rows.
  __device__ __forceinline__ uint64_t at(int step, int rows) const {
    constexpr uint64_t kEightRows = 1024 >> 4, kSwizzle128 = 1;
    const auto offset =
        (step / 4 * rows * kBlockColumns + step % 4 * 8) * static_cast<int>(sizeof(float)) >> 4;
    return (start_ + offset) | uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
  }

 private:
  uint32_t start_;  // in 16 bytes
};

/// The compiler must not read or write these across this line.
template <int N>
__device__ __forceinline__ void pin(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

/// Runs the products that `issue` starts; does `meanwhile` and waits for them. `used` are the registers they
/// add to or read.
template <class Issue, class Meanwhile, class... Used>
__device__ __forceinline__ void products(Issue issue, Meanwhile meanwhile, Used&... used) {
  (pin(used), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  issue();
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  meanwhile();
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  (pin(used), ...);
}

struct Nothing {
  __device__ __forceinline__ void operator()() const {}
};

/// What this thread wrote or copied to shared memory is there for the tensor cores behind the next barrier.
__device__ __forceinline__ void show_to_tensor_cores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// c (64 x 64) += a (64 x 8) b^T, with b's rows in shared memory. a holds TF32 numbers.
__device__ __forceinline__ void product_64(float (&c)[32], float a0, float a1, float a2, float a3,
                                           uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,"
      "%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
        "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
        "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]),
        "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
        "+f"(c[30]), "+f"(c[31])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "l"(b));
}

/// The same with a in shared memory, too.
__device__ __forceinline__ void product_64(float (&c)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,"
      "%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
        "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
        "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]),
        "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
        "+f"(c[30]), "+f"(c[31])
      : "l"(a), "l"(b));
}

/// c (64 x 32) += a (64 x 8) b^T, both in shared memory.
__device__ __forceinline__ void product_32(float (&c)[16], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, 1, 1, 1;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
        "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
      : "l"(a), "l"(b));
}

}  // namespace rankscope::cuda
