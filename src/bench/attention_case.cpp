#include "bench/attention_case.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/graph.h"
#include "bench/plain_network.h"
#include "ops/small_attention.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

using at::Tensor;
using Attention = std::function<Tensor(const Tensor& qkv)>;

constexpr int64_t kTokens = 16, kModule = 64;

struct Problem {
  int64_t rows, columns, heads;
};

// What the widest case of the studies has on the machine: 64 modules on CUDA, 8 on the CPU.
Problem problem_of(const Machine& machine, const AttentionShape& shape) {
  const int64_t columns = kModule * (machine.cuda() ? 64 : 8);
  return {kTokens * (machine.quick ? 32 : 256), columns, columns / shape.width};
}

// Output and gradient of qkv for one and the same gradient of the output.
std::pair<Tensor, Tensor> both(const Attention& f, const Tensor& qkv, const Tensor& dout) {
  const Tensor leaf = qkv.detach().requires_grad_(true);
  const Tensor out = f(leaf);
  return {out.detach(), torch::autograd::grad({out}, {leaf}, {dout.to(qkv.scalar_type())}).front()};
}

double distance(const std::pair<Tensor, Tensor>& x, const std::pair<Tensor, Tensor>& exact) {
  const auto part = [](const Tensor& a, const Tensor& b) {
    return ((a.to(at::kDouble) - b).norm() / b.norm()).item<double>();
  };
  return std::max(part(x.first, exact.first), part(x.second, exact.second));
}

// One call: forward without a graph, or the way back through a graph that is kept.
std::function<void()> call_of(const Attention& f, const Tensor& qkv, const Tensor& dout, bool backward) {
  if (!backward)
    return [=] {
      const c10::NoGradGuard no_gradients;
      f(qkv);
    };
  const Tensor leaf = qkv.detach().requires_grad_(true);
  const Tensor out = f(leaf);
  return [=] { torch::autograd::grad({out}, {leaf}, {dout}, /*retain_graph=*/true); };
}

// A graph has to see the forward pass too, on its own stream: backward is what both take less the forward.
double best_seconds(const Machine& machine, const Attention& f, const Tensor& qkv, const Tensor& dout,
                    bool backward) {
  const double forward = seconds_of(machine, captured(machine.device, call_of(f, qkv, dout, false)));
  if (!backward) return forward;
  if (!machine.cuda()) return seconds_of(machine, call_of(f, qkv, dout, true));
  return seconds_of(machine, captured(machine.device, [=] { both(f, qkv, dout); })) - forward;
}

}  // namespace

std::string name_of(const AttentionShape& s) {
  return fmt::format("attention r={} {}", s.width, s.backward ? "back" : "forth");
}

BenchRow measure_attention(Machine& machine, const AttentionShape& shape) {
  BenchRow row;
  row.name = name_of(shape);
  const Problem p = problem_of(machine, shape);
  const HeadShape heads{.heads = {static_cast<int32_t>(p.heads)},
                        .scale = {static_cast<float>(1 / std::sqrt(static_cast<double>(shape.width)))},
                        .width_qk = p.columns,
                        .width_v = p.columns};
  const Attention ours = [heads](const Tensor& x) { return small_self_attention(x, kTokens, heads); };
  const Attention eager = [p, &shape](const Tensor& x) {
    return plain_attention(x, kTokens, p.heads, std::max(kModule, shape.width));
  };
  const Attention best = [p](const Tensor& x) { return library_attention(x, kTokens, p.heads); };

  at::manual_seed(1);
  const auto options = at::TensorOptions().device(device_of(machine.device));
  const Tensor qkv = at::randn({p.rows, 3 * p.columns}, options),
               dout = at::randn({p.rows, p.columns}, options);
  {
    const auto exact = both(best, qkv.to(at::kDouble), dout);
    row.plain_error = distance(both(eager, qkv, dout), exact);
    row.error = distance(both(ours, qkv, dout), exact);
    if (!(row.error <= 2 * row.plain_error + std::numeric_limits<float>::epsilon())) {
      row.fault = fmt::format("ours is off by {:.1e}, LibTorch by {:.1e}", row.error, row.plain_error);
      return row;
    }
  }
  measure_rates(machine);
  row.ours = 1e3 * seconds_of(machine, call_of(ours, qkv, dout, shape.backward));
  row.eager = 1e3 * seconds_of(machine, call_of(eager, qkv, dout, shape.backward));
  row.best = 1e3 * best_seconds(machine, best, qkv, dout, shape.backward);
  // Two products of a row of scores forward; backward computes the scores again and has four more. Q, K, V
  // and the output pass once; backward reads them with the output's gradient and writes three.
  const double cells = static_cast<double>(p.rows * p.columns), product = 2.0 * kTokens * cells;
  row.flops = (shape.backward ? 5 : 2) * product;
  row.bytes = (shape.backward ? 7 : 4) * sizeof(float) * cells;
  return row;
}

}  // namespace rankscope
