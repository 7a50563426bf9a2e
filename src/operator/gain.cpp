#include "operator/gain.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"

namespace rankscope {
namespace {

double slope_at_zero(Activation activation) {
  switch (activation) {
    case Activation::gelu:
    case Activation::gelu_tanh:
    case Activation::gelu_bloom:
    case Activation::quick_gelu:
    case Activation::quick_gelu_7:
    case Activation::silu:
      return 0.5;
    case Activation::relu:
      return 0.0;
    case Activation::tanh:
    case Activation::identity:
      return 1.0;
    case Activation::sigmoid:
    case Activation::one_plus_7:
      break;
  }
  throw Error(fmt::format("{} of 0 is not 0, so it is no gain", to_string(activation)));
}

}  // namespace

at::Tensor gain_of(const at::Tensor& h, const at::Tensor& activated, Activation activation) {
  return at::where(h == 0, at::full({}, slope_at_zero(activation), h.options()), activated / h);
}

}  // namespace rankscope
