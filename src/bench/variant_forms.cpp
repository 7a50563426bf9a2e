#include "bench/variant_forms.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/running_attention.h"
#include "ops/delta_attention.h"
#include "ops/linear_attention.h"
#include "ops/polynomial_attention.h"
#include "tensors/causal_attention.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr int64_t kWidth = 64, kNarrow = 16, kDegree = 2;

// G [.., T, T] of what each token keeps.
Tensor kept_between(const Tensor& keep) {
  const Tensor sums = at::log(keep).cumsum(-1);
  return at::exp((sums.unsqueeze(-1) - sums.unsqueeze(-2)).clamp_max(0)).tril();
}

Tensor products(const VariantOperands& x) { return at::matmul(x[0], x[1].transpose(-1, -2)); }

Tensor whole_delta(const VariantOperands& x) {
  const Tensor G = kept_between(x[4]), eye = at::eye(x[0].size(1), x[0].options());
  const Tensor same = at::matmul(x[1], x[1].transpose(1, 2)) * G;
  const Tensor system = eye + (x[3].unsqueeze(2) * same).tril(-1);
  const Tensor u = at::linalg_solve_triangular(system, x[3].unsqueeze(2) * x[2], false, true, true);
  return at::matmul(products(x) * G, u);
}

// Counted by products: one of a triangle inside a chunk takes C flops a token and column, one with the state
// 2 rows columns. What passes through memory: q, k, v and out, then also their gradients.
RunningForm linear_form(std::string name, int64_t d, int64_t m, int64_t e, VariantForm ours,
                        VariantForm composed, VariantForm whole) {
  const auto C = static_cast<double>(kRunningChunk), D = static_cast<double>(d), M = static_cast<double>(m),
             E = static_cast<double>(e);
  return {std::move(name),
          d,
          m,
          3,
          std::move(ours),
          std::move(composed),
          std::move(whole),
          {C * (D + E) + 4 * M * E, C * (3 * D + 2 * E) + 10 * M * E},
          {4 * (2 * D + 2 * E), 4 * (4 * D + 3 * E)}};
}

RunningForm delta_form() {
  constexpr double C = kRunningChunk, D = kWidth;
  return {"delta",
          kWidth,
          kWidth,
          5,
          [](const VariantOperands& x) { return delta_attention(x[0], x[1], x[2], x[3], x[4]); },
          [](const VariantOperands& x) { return delta_attention_reference(x[0], x[1], x[2], x[3], x[4]); },
          whole_delta,
          {C * 4 * D + 6 * D * D, C * 11 * D + 14 * D * D},
          {4 * (4 * D + 2), 4 * (7 * D + 4)}};
}

}  // namespace

const std::vector<RunningForm>& running_forms() {
  static const std::vector<RunningForm> forms{
      linear_form(
          "linear", kWidth, kWidth, kWidth,
          [](const VariantOperands& x) { return linear_attention(x[0], x[1], x[2], {}); },
          [](const VariantOperands& x) { return linear_attention_reference(x[0], x[1], x[2], {}); },
          [](const VariantOperands& x) { return at::matmul(products(x).tril(), x[2]); }),
      linear_form(
          "decay", kWidth, kWidth, kWidth,
          [](const VariantOperands& x) { return linear_attention(x[0], x[1], x[2], x[4]); },
          [](const VariantOperands& x) { return linear_attention_reference(x[0], x[1], x[2], x[4]); },
          [](const VariantOperands& x) { return at::matmul(products(x) * kept_between(x[4]), x[2]); }),
      delta_form(),
      linear_form(
          "fastmax p=2", kNarrow, monomial_count(kNarrow, kDegree), kNarrow + 1,
          [](const VariantOperands& x) { return polynomial_attention(x[0], x[1], x[2], kDegree); },
          [](const VariantOperands& x) { return polynomial_attention_reference(x[0], x[1], x[2], kDegree); },
          [](const VariantOperands& x) {
            const Tensor s = products(x), f = (1 + s + s * s / 2).tril();
            return at::matmul(f / f.sum(-1, true), x[2]);
          })};
  return forms;
}

std::vector<VariantForm> softmax_forms() {
  const VariantForm library = [](const VariantOperands& x) {
    return causal_dot_product_attention(x[0], x[1], x[2]);
  };
  const VariantForm tiles = [](const VariantOperands& x) {
    constexpr int64_t kTile = 256;
    const int64_t T = x[0].size(1);
    const Tensor q = x[0] / std::sqrt(static_cast<double>(x[0].size(2)));
    std::vector<Tensor> out;
    for (int64_t r = 0; r < T; r += kTile) {
      const int64_t rows = std::min(kTile, T - r), keys = r + rows;
      const Tensor hidden = at::ones({rows, keys}, q.options().dtype(at::kBool)).triu(r + 1);
      const Tensor scores = at::matmul(q.narrow(1, r, rows), x[1].narrow(1, 0, keys).transpose(1, 2));
      out.push_back(
          at::matmul(at::softmax(scores.masked_fill(hidden, -INFINITY), -1), x[2].narrow(1, 0, keys)));
    }
    return at::cat(out, 1);
  };
  return {library, tiles};
}

}  // namespace rankscope
