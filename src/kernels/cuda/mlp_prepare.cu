// Factors as the MLP's kernels want them: rounded, and turned.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mlp.h"
#include "kernels/cuda/mma.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kSquare = 32, kSquareRows = 8;

__global__ void prepare_kernel(int64_t rows, int64_t padded, int64_t columns, const float* x, int64_t trial,
                               float* rounded, float* turned) {
  __shared__ float square[kSquare][kSquare + 1];
  const int t = blockIdx.z;
  const int64_t row = int64_t{blockIdx.y} * kSquare, column = int64_t{blockIdx.x} * kSquare;
  for (int i = threadIdx.y; i < kSquare; i += kSquareRows) {
    const int64_t r = row + i, c = column + threadIdx.x;
    const float value = r < rows ? tf32_round(x[t * trial + r * columns + c]) : 0.0f;
    if (rounded != nullptr) rounded[(t * padded + r) * columns + c] = value;
    square[i][threadIdx.x] = value;
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kSquare; i += kSquareRows)
    turned[(t * columns + column + i) * padded + row + threadIdx.x] = square[threadIdx.x][i];
}

}  // namespace

void mlp_prepare(int64_t trials, int64_t rows, int64_t padded, int64_t columns, const float* x, int64_t trial,
                 float* rounded, float* turned, void* stream) {
  if (trials == 0 || padded == 0) return;
  const dim3 grid(blocks_for(columns, kSquare, "mlp_prepare"), blocks_for(padded, kSquare, "mlp_prepare"),
                  static_cast<unsigned>(trials));
  prepare_kernel<<<grid, dim3(kSquare, kSquareRows), 0, as_stream(stream)>>>(rows, padded, columns, x, trial,
                                                                             rounded, turned);
  check_launch("mlp_prepare");
}

}  // namespace rankscope::cuda
