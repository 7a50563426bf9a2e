// The one place that knows LibTorch 1.13 from 2.11, and turns the command line's words into torch's.
// Included by .cpp files only.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace rankscope {

at::ScalarType dtype_of(const std::string& name);  // "float32", "float64"; anything else is a usage error
at::Device device_of(const std::string& name);     // "cpu", "cuda", "cuda:1"; an absent device is an error
bool all_finite(const at::Tensor& t);               // no NaN, no Inf
/// softmax(q k^T / sqrt(width)) v for [.., tokens, width]: the library's fused kernel from LibTorch 2 on.
at::Tensor dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
void use_threads(int count);                       // 0: all cores; torch, OpenMP and BLAS together
int thread_count();
/// While it lives OpenBLAS stays on the calling thread: for products inside parallel regions of our own, of
/// which an OpenBLAS with threads of its own knows nothing.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;

 private:
  int before_ = 0;
};
std::string torch_version();

}  // namespace rankscope
