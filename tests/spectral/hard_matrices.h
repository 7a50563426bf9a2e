// Matrices on which spectra go wrong: without rank, over many decades, and those whose spectrum is known.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

namespace rankscope {

/// A batch [count, m, n] and what it is.
using HardMatrices = std::vector<std::pair<std::string, at::Tensor>>;

inline at::Tensor orthogonal(int64_t n) { return std::get<0>(at::linalg_qr(at::randn({n, n}, at::kDouble))); }

inline HardMatrices matrices_that_lack_rank() {
  HardMatrices all;
  for (const int64_t rank : {1, 2, 30}) {
    all.emplace_back("rank", at::matmul(at::randn({2, 60, rank}), at::randn({2, rank, 70})));
    const at::Tensor x = at::randn({2, 50, 50});
    all.emplace_back("zero rows", at::cat({x.narrow(1, 0, rank), at::zeros({2, 50 - rank, 50})}, 1));
    all.emplace_back("zero columns", at::cat({x.narrow(2, 0, rank), at::zeros({2, 50, 50 - rank})}, 2));
  }
  return all;
}

inline HardMatrices singular_values_over_many_decades() {
  const at::Tensor falling = at::pow(10.0, -at::arange(60, at::kDouble) / 4);
  const auto random = [] { return at::randn({60, 60}, at::kDouble); };
  return {{"falling", (orthogonal(60) * falling).mm(orthogonal(60)).unsqueeze(0)},
          {"graded columns", (random() * falling).unsqueeze(0)},
          {"graded rows", (random() * falling.unsqueeze(1)).unsqueeze(0)},
          {"rising columns", (random() * falling.flip(0)).unsqueeze(0)}};
}

inline HardMatrices matrices_that_are_known() {
  HardMatrices all{
      {"known", at::stack({at::eye(48), at::zeros({48, 48}), at::ones({48, 48}), at::eye(48).flip(0),
                           at::eye(48).roll(1, 0), at::diag(at::arange(48).to(at::kFloat)),
                           orthogonal(48).to(at::kFloat)})}};
  for (const int64_t n : {1, 2, 128, 199}) all.emplace_back("identity", at::eye(n).unsqueeze(0));
  return all;
}

}  // namespace rankscope
