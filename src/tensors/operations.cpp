#include "tensors/operations.h"

namespace rankscope {
namespace {

at::Tensor activated(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu(x, "none");
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_bloom:
      return x * 0.5 * (1.0 + at::tanh(0.79788456 * x * (1 + 0.044715 * x * x)));
    case Activation::quick_gelu:
      return x * at::sigmoid(x * 1.702);
    case Activation::quick_gelu_7: {
      const at::Tensor bounded = x.clamp_max(7.0);
      return bounded * at::sigmoid(bounded * 1.702);
    }
    case Activation::one_plus_7:
      return x.clamp(-7.0, 7.0) + 1.0;
    case Activation::relu:
      return at::relu(x);
    case Activation::silu:
      return at::silu(x);
    case Activation::sigmoid:
      return at::sigmoid(x);
    case Activation::tanh:
      return at::tanh(x);
    case Activation::identity:
      return x;
  }
  return x;
}

}  // namespace

at::Tensor apply_activation(at::Tensor x, Activation activation, bool in_place) {
  if (!in_place) return activated(x, activation);
  switch (activation) {
    case Activation::gelu:
      return at::gelu_(x, "none");
    case Activation::gelu_tanh:
      return at::gelu_(x, "tanh");
    case Activation::gelu_bloom:
    case Activation::quick_gelu:
    case Activation::quick_gelu_7:
    case Activation::one_plus_7:
      return activated(x, activation);
    case Activation::relu:
      return at::relu_(x);
    case Activation::silu:
      return at::silu_(x);
    case Activation::sigmoid:
      return at::sigmoid_(x);
    case Activation::tanh:
      return at::tanh_(x);
    case Activation::identity:
      return x;
  }
  return x;
}

at::Tensor repeat_chunks(const at::Tensor& x, int64_t times, int64_t chunk) {
  // Not repeat_interleave, which reads its count back from the device.
  const at::Tensor chunks = x.unflatten(-1, {x.size(-1) / chunk, 1, chunk});
  std::vector<int64_t> every = chunks.sizes().vec();
  every[every.size() - 2] = times;
  return chunks.expand(every).flatten(-3);
}

at::Tensor set_beside(const at::Tensor& shared, const at::Tensor& own, int64_t heads) {
  std::vector<int64_t> every = shared.sizes().vec();
  every.insert(every.end() - 1, heads);
  return at::cat({shared.unsqueeze(-2).expand(every), own.unflatten(-1, {heads, own.size(-1) / heads})}, -1)
      .flatten(-2);
}

}  // namespace rankscope
