// AdamW over a stack of flat parameter buffers, in one pass over gradient, parameter and both moments.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/train.h"

namespace rankscope::cuda {
namespace {

constexpr int kThreads = 256;

struct Constants {
  AdamW rule;
  float rest1, rest2;          // 1 - beta
  float log_beta1, log_beta2;  // natural
};

// What a trial's update number comes to.
struct Update {
  float decay, rate, root;  // p = decay p - rate m / (root sqrt(v) + epsilon)
};

__device__ Update update_of(const Constants& k, int64_t step, float lr) {
  const float number = static_cast<float>(step + 1);
  const float correction1 = -expm1f(number * k.log_beta1), correction2 = -expm1f(number * k.log_beta2);
  return {1.0f - lr * k.rule.weight_decay, lr / correction1, 1.0f / sqrtf(correction2)};
}

__device__ __forceinline__ void update(const Constants& k, const Update& u, float g, float& p, float& m,
                                       float& v) {
  m = k.rule.beta1 * m + k.rest1 * g;
  v = k.rule.beta2 * v + k.rest2 * g * g;
  p = u.decay * p - u.rate * m / (u.root * sqrtf(v) + k.rule.epsilon);
}

// Vector is float4 where every trial's buffer is aligned, else float; count in Vectors.
template <class Vector>
__global__ __launch_bounds__(kThreads) void update_kernel(const __grid_constant__ Constants k, int64_t count,
                                                          const int64_t* steps, const float* lr,
                                                          int64_t lr_stride, const int32_t* alive,
                                                          const Vector* gradient, Vector* parameter,
                                                          Vector* moment1, Vector* moment2) {
  const int t = blockIdx.y;
  if (alive[t] == 0) return;
  const int64_t step = steps[t];
  const Update u = update_of(k, step, lr[t * lr_stride + step]);
  const int64_t end = (t + 1) * count;
  for (int64_t i = t * count + int64_t{blockIdx.x} * kThreads + threadIdx.x; i < end;
       i += int64_t{gridDim.x} * kThreads) {
    const Vector g = gradient[i];
    Vector p = parameter[i], m = moment1[i], v = moment2[i];
    if constexpr (sizeof(Vector) == sizeof(float4)) {
      update(k, u, g.x, p.x, m.x, v.x);
      update(k, u, g.y, p.y, m.y, v.y);
      update(k, u, g.z, p.z, m.z, v.z);
      update(k, u, g.w, p.w, m.w, v.w);
    } else {
      update(k, u, g, p, m, v);
    }
    parameter[i] = p;
    moment1[i] = m;
    moment2[i] = v;
  }
}

template <class Vector>
void launch(const Constants& k, int64_t trials, int64_t count, const int64_t* steps, const float* lr,
            int64_t lr_stride, const int32_t* alive, const float* gradient, float* parameter, float* m,
            float* v, cudaStream_t stream) {
  constexpr int64_t kVectorsPerThread = 2;
  const dim3 grid(blocks_for(count, kVectorsPerThread * kThreads, "adamw_update"),
                  static_cast<unsigned>(trials));
  update_kernel<Vector><<<grid, kThreads, 0, stream>>>(
      k, count, steps, lr, lr_stride, alive, reinterpret_cast<const Vector*>(gradient),
      reinterpret_cast<Vector*>(parameter), reinterpret_cast<Vector*>(m), reinterpret_cast<Vector*>(v));
  check_launch("adamw_update");
}

}  // namespace

void adamw_update(const AdamW& rule, int64_t trials, int64_t count, const int64_t* steps, const float* lr,
                  int64_t lr_stride, const int32_t* alive, const float* gradient, float* parameter, float* m,
                  float* v, void* stream) {
  if (trials == 0 || count == 0) return;
  const Constants k{rule, 1.0f - rule.beta1, 1.0f - rule.beta2,
                    static_cast<float>(std::log(double{rule.beta1})),
                    static_cast<float>(std::log(double{rule.beta2}))};
  const auto wide = [](const float* p) { return reinterpret_cast<uintptr_t>(p) % sizeof(float4) == 0; };
  const cudaStream_t s = as_stream(stream);
  if (count % 4 == 0 && wide(gradient) && wide(parameter) && wide(m) && wide(v))
    launch<float4>(k, trials, count / 4, steps, lr, lr_stride, alive, gradient, parameter, m, v, s);
  else
    launch<float>(k, trials, count, steps, lr, lr_stride, alive, gradient, parameter, m, v, s);
}

}  // namespace rankscope::cuda
