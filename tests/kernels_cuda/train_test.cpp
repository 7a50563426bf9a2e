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

class CudaAdamW : public OnDevice {};

// The textbook update, in the precision T.
template <class T>
std::vector<T> textbook(const AdamW& rule, const std::vector<float>& start,
                        const std::vector<float>& gradient, const std::vector<float>& lr) {
  std::vector<T> p(start.begin(), start.end()), m(p.size()), v(p.size());
  for (size_t step = 0; step < lr.size(); ++step)
    for (size_t i = 0; i < p.size(); ++i) {
      const T g = T(gradient[i]) * T(step + 1), b1 = rule.beta1, b2 = rule.beta2, rate = lr[step];
      p[i] -= rate * T(rule.weight_decay) * p[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const T first = m[i] / (1 - std::pow(b1, T(step + 1))), second = v[i] / (1 - std::pow(b2, T(step + 1)));
      p[i] -= rate * first / (std::sqrt(second) + T(rule.epsilon));
    }
  return p;
}

TEST_F(CudaAdamW, FollowsTheTextbookWithEachTrialsOwnRate) {
  const AdamW rule{0.9f, 0.95f, 1e-8f, 0.1f};
  const std::vector<float> lr{1e-3f, 2e-3f, 3e-3f, 0.1f, 0.05f, 0.0f};
  const std::vector<std::vector<float>> rates{{1e-3f, 2e-3f, 3e-3f}, {0.1f, 0.05f, 0.0f}};
  for (const int64_t count : {1, 5, 4096, 5001}) {
    const auto start = random_floats(2 * count, 1), gradient = random_floats(2 * count, 2);
    const DeviceBuffer<float> parameter(start), m(std::vector<float>(2 * count)),
        v(std::vector<float>(2 * count)), device_lr(lr);
    const DeviceBuffer<int32_t> alive(std::vector<int32_t>{1, 1});
    for (int64_t step = 0; step < 3; ++step) {
      auto g = gradient;
      for (float& x : g) x *= static_cast<float>(step + 1);
      const DeviceBuffer<float> device_gradient(g);
      const DeviceBuffer<int64_t> steps({step, step});
      cuda::adamw_update(rule, 2, count, steps.data(), device_lr.data(), 3, alive.data(),
                         device_gradient.data(), parameter.data(), m.data(), v.data(), nullptr);
    }
    const auto ours = parameter.values();
    for (int64_t t = 0; t < 2; ++t) {
      const auto part = [&](const std::vector<float>& x) {
        return std::vector<float>(x.begin() + t * count, x.begin() + (t + 1) * count);
      };
      const auto exact = textbook<double>(rule, part(start), part(gradient), rates[t]);
      const auto plain = textbook<float>(rule, part(start), part(gradient), rates[t]);
      expect_exact_as_float(part(ours), plain, exact,
                            "trial " + std::to_string(t) + " of " + std::to_string(count));
    }
  }
}

TEST_F(CudaAdamW, LeavesADeadTrialAlone) {
  auto start = random_floats(20, 1);
  for (float& x : start) x = std::abs(x);  // a second moment is not negative
  const DeviceBuffer<float> parameter(start), gradient(random_floats(20, 2)), m(start), v(start), lr({1e-2f});
  const DeviceBuffer<int32_t> alive(std::vector<int32_t>{1, 0});
  const DeviceBuffer<int64_t> steps({0, 0});
  cuda::adamw_update({}, 2, 10, steps.data(), lr.data(), 0, alive.data(), gradient.data(), parameter.data(),
                     m.data(), v.data(), nullptr);
  for (const auto* buffer : {&parameter, &m, &v}) {
    const auto after = buffer->values();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(after[i] == start[i], i >= 10) << i;
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
