#include "tensors/torch_compat.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/version.h>

#include <cmath>
#include <thread>

#include "base/error.h"
#include "tensors/causal_attention.h"
#include "tensors/device_choice.h"

// Present when BLAS is OpenBLAS; weak, so that any BLAS links.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int);
extern "C" __attribute__((weak)) int openblas_get_num_threads();

namespace rankscope {

at::ScalarType dtype_of(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "float64") return at::kDouble;
  if (name == "bfloat16" || name == "float16")
    throw usage_error(fmt::format("{} is a storage type; the arithmetic here is float32 or float64", name))
        .hint("--dtype float32 reads a " + name + " checkpoint as it is");
  throw unknown_name("dtype", name, {"float32", "float64"});
}

at::Device device_of(const std::string& name) {
  return choose_device(name, name == "cpu" ? CudaFound() : find_cuda());
}

bool all_finite(const at::Tensor& t) {
  // One pass without a temporary: a sum is finite only if every term is. Finite terms may still overflow it.
  return std::isfinite(t.sum().item<double>()) || t.isfinite().all().item<bool>();
}

at::Tensor dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v);
#else
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  return at::matmul(at::softmax(at::matmul(q * scale, k.transpose(-1, -2)), -1), v);
#endif
}

at::Tensor causal_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  if (q.dim() == 3)  // kernels without a matrix want a batch, too
    return causal_dot_product_attention(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)).squeeze(0);
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
#else
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor scores = at::matmul(q * scale, k.transpose(-1, -2));
  const at::Tensor hidden = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1);
  return at::matmul(at::softmax(scores.masked_fill(hidden, -INFINITY), -1), v);
#endif
}

void use_threads(int count) {
  if (count <= 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  at::set_num_threads(count);
  omp_set_num_threads(count);  // a LibTorch that brings its own OpenMP does not speak for ours
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(count);
}

OneBlasThread::OneBlasThread() {
  if (openblas_set_num_threads == nullptr || openblas_get_num_threads == nullptr) return;
  before_ = openblas_get_num_threads();
  openblas_set_num_threads(1);
}
OneBlasThread::~OneBlasThread() {
  if (before_ > 0) openblas_set_num_threads(before_);
}

int thread_count() { return at::get_num_threads(); }

std::string torch_version() { return TORCH_VERSION; }

}  // namespace rankscope
