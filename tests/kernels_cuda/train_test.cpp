#include "kernels/cuda/train.h"

#include <numbers>

#include "device.h"

namespace rankscope {
namespace {

class CudaNormals : public OnDevice {};

// kernels/cpu/normals.h's definition, in double.
double normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element) {
  const auto words = Philox{seed, stream, step}.words(element / 4);
  const int pair = element % 4 / 2;
  const double u = (words[2 * pair] + 0.5) * 0x1p-32,
               angle = 2 * std::numbers::pi * (words[2 * pair + 1] + 0.5) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

TEST_F(CudaNormals, AreThePhiloxNormalsOfTheirTrialAndStep) {
  const std::vector<uint64_t> seeds{1, 0x123456789abcdefull, 7};
  const std::vector<int64_t> steps{0, 41, 1};
  const DeviceBuffer<uint64_t> device_seeds(seeds);
  const DeviceBuffer<int64_t> device_steps(steps);
  for (const int64_t count : {0, 1, 6, 4096, 10001}) {
    const DeviceBuffer<float> out(std::vector<float>(3 * count, poison()));
    cuda::fill_normals(3, device_seeds.data(), 9, device_steps.data(), count, out.data(), nullptr);
    const auto ours = out.values();
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t i = 0; i < count; ++i) {
        const double exact = normal(seeds[t], 9, static_cast<uint32_t>(steps[t]), i);
        // Logarithm, root, sine and product: 2 ulp of the radius, which is at most sqrt(2 log 2^33) = 6.8.
        ASSERT_NEAR(ours[t * count + i], exact, 2 * std::numeric_limits<float>::epsilon() * 6.8)
            << t << " " << i;
      }
  }
}

class CudaGraph : public OnDevice {};

TEST_F(CudaGraph, ReplaysMoveOnAsTheStepsDo) {
  const int64_t count = 1000;
  const DeviceBuffer<uint64_t> seeds({5});
  const DeviceBuffer<int64_t> steps({0});
  const DeviceBuffer<float> out(std::vector<float>(count, poison()));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cuda::fill_normals(1, seeds.data(), 0, steps.data(), count, out.data(), stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  std::vector<std::vector<float>> seen;
  for (const int64_t step : {0, 1, 0}) {
    ASSERT_EQ(cudaMemcpy(steps.data(), &step, sizeof step, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    seen.push_back(out.values());
  }
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0], seen[1]);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace rankscope
