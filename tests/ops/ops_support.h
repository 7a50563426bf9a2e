// What the tests of operators share: devices in reach, distances, and derivatives by differences.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/cuda/train.h"

namespace rankscope {

inline std::vector<at::Device> devices() {
  std::vector<at::Device> all{at::kCPU};
  if (at::hasCUDA() && cuda::available()) all.emplace_back(at::kCUDA);
  return all;
}

/// Standard normals that float holds exactly, so that every precision sees the same numbers.
inline at::Tensor normals(at::IntArrayRef shape) { return at::randn(shape, at::kDouble).to(at::kFloat); }

inline double largest(const at::Tensor& x) {
  return x.numel() == 0 ? 0.0 : x.to(at::kCPU, at::kDouble).abs().max().item<double>();
}
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return largest(a.to(at::kCPU, at::kDouble) - b.to(at::kCPU, at::kDouble));
}

using Operator = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// The output and the gradients of sum(output * c), c fixed; undefined operands get none.
inline std::vector<at::Tensor> outputs(const Operator& op, const std::vector<at::Tensor>& operands,
                                       at::ScalarType type, at::Device device) {
  std::vector<at::Tensor> in, wanted;
  for (const at::Tensor& x : operands) {
    in.push_back(x.defined() ? x.to(device, type).detach().requires_grad_(true) : x);
    if (x.defined()) wanted.push_back(in.back());
  }
  const at::Tensor out = op(in);
  at::manual_seed(4);
  const at::Tensor c = normals(out.sizes()).to(device, type);
  std::vector<at::Tensor> all{out.detach()};
  for (const at::Tensor& g : torch::autograd::grad({(out * c).sum()}, wanted)) all.push_back(g);
  return all;
}

/// At most twice the error of the plain composition in float against double, and a few roundings for where
/// that is 0.
inline void expect_as_exact(const Operator& fused, const Operator& plain,
                            const std::vector<at::Tensor>& operands, at::Device device) {
  const auto exact = outputs(plain, operands, at::kDouble, at::kCPU);
  const auto theirs = outputs(plain, operands, at::kFloat, device);
  const auto ours = outputs(fused, operands, at::kFloat, device);
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(ours[i].sizes(), exact[i].sizes()) << i;
    EXPECT_LE(distance(ours[i], exact[i]),
              2 * distance(theirs[i], exact[i]) + 2e-6 * std::max(1.0, largest(exact[i])))
        << "tensor " << i << " on " << device;
  }
}

/// In double precision: the slope along a random direction against a central difference.
inline void expect_derivative(const Operator& op, const std::vector<at::Tensor>& operands) {
  const auto all = outputs(op, operands, at::kDouble, at::kCPU);
  at::manual_seed(4);
  const at::Tensor c = normals(all[0].sizes()).to(at::kDouble);
  const double h = 1e-5;
  at::manual_seed(5);
  std::vector<at::Tensor> ahead, behind;
  double slope = 0;
  size_t next = 1;
  for (const at::Tensor& x : operands) {
    ahead.push_back(x);
    behind.push_back(x);
    if (!x.defined()) continue;
    const at::Tensor direction = at::randn(x.sizes(), at::kDouble);
    slope += (all[next++] * direction).sum().item<double>();
    ahead.back() = x.to(at::kDouble) + direction * h;
    behind.back() = x.to(at::kDouble) - direction * h;
  }
  const double difference = ((op(ahead) - op(behind)) * c).sum().item<double>() / (2 * h);
  EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(difference)));
}

}  // namespace rankscope
