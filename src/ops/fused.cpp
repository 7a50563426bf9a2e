#include "ops/fused.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "kernels/cuda/train.h"

namespace rankscope {

bool fused_kernels() {
  static const bool fused = [] {
    const char* set = std::getenv("RANKSCOPE_KERNELS");
    if (set == nullptr || std::string_view(set) == "fused") return true;
    if (std::string_view(set) == "reference") return false;
    throw usage_error(fmt::format("RANKSCOPE_KERNELS is \"{}\"", printable(set))).hint("fused or reference");
  }();
  return fused;
}

bool fused_for(const at::Tensor& x) {
  if (!fused_kernels()) return false;
  return x.is_cuda() ? cuda::available() && x.scalar_type() == at::kFloat
                     : x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
}

bool tf32_allowed() {
  return at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST;
}

at::Tensor aligned(const at::Tensor& x) {
  constexpr uintptr_t kBytes = 16;
  return reinterpret_cast<uintptr_t>(x.data_ptr()) % kBytes == 0 ? x : x.clone(at::MemoryFormat::Contiguous);
}

void refuse_second_derivatives() {
  if (at::GradMode::is_enabled())
    throw usage_error("the fused kernels have no second derivative, and a graph of the first was asked for")
        .hint("RANKSCOPE_KERNELS=reference");
}

}  // namespace rankscope
