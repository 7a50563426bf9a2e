#include "ops/projected_attention.h"

#include <torch/library.h>

#include <algorithm>

#include "kernels/cuda/projected_attention.h"
#include "kernels/cuda/train.h"
#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

// Neighbouring trials that go the same way.
struct Run {
  int64_t first, count;
  bool fused;
  HeadShape shape;
};

bool fits(const Tensor& x, const HeadShape& shape, int64_t tokens, size_t trial) {
  return !shape.hard && !shape.shared_values && shape.width_qk == shape.width_v && shape.scale[trial] >= 0 &&
         cuda::projected_attention_takes(tokens, x.size(-1), shape.width_qk, shape.heads[trial]);
}

std::vector<Run> runs_of(const Tensor& x, int64_t tokens, const HeadShape& shape) {
  std::vector<Run> runs;
  for (size_t t = 0; t < shape.heads.size(); ++t) {
    const bool fused = fits(x, shape, tokens, t);
    if (runs.empty() || runs.back().fused != fused || runs.back().count == cuda::kMaxTrials) {
      runs.push_back({static_cast<int64_t>(t), 0, fused, shape});
      runs.back().shape.heads.clear();
      runs.back().shape.scale.clear();
    }
    Run& run = runs.back();
    run.shape.heads.push_back(shape.heads[t]);
    run.shape.scale.push_back(shape.scale[t]);
    ++run.count;
  }
  return runs;
}

cuda::ProjectedAttention describe(const Run& run, const Tensor& x, const Tensor& W, const Tensor& b,
                                  int64_t tokens, const Tensor& out) {
  return {run.count,
          x.size(1) / tokens,
          run.shape.width_qk,
          run.shape.heads.data(),
          run.shape.scale.data(),
          {x.stride(0), x.stride(1)},
          {out.stride(0), out.stride(1)},
          W.stride(0),
          b.numel() > 0 ? b.stride(0) : 0};
}

const float* bias(const Tensor& b) { return b.numel() > 0 ? b.data_ptr<float>() : nullptr; }

Tensor part(const Tensor& x, const Run& run) { return x.numel() > 0 ? x.narrow(0, run.first, run.count) : x; }

// Rows of a trial follow each other without a gap, and every trial starts at a multiple of 16 bytes.
Tensor dense(const Tensor& x) {
  return aligned(x[0].is_contiguous() && x.stride(0) % 4 == 0 ? x : x.contiguous());
}

struct Saved : torch::CustomClassHolder {
  std::vector<Run> runs;
  int64_t tokens = 1;
};

// Everything has a leading [trials] and is dense(); an absent bias has no elements.
class ProjectedSelfAttention : public torch::autograd::Function<ProjectedSelfAttention> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& W,
                        const Tensor& b, const c10::IValue& state) {
    const Saved& s = *static_cast<Saved*>(state.toCapsule().get());
    const Tensor out = at::empty({x.size(0), x.size(1), s.runs.front().shape.width_v}, x.options());
    Variables saved{x, W, b};
    for (const Run& run : s.runs) {
      const Tensor rows = part(x, run), weights = part(W, run), biases = part(b, run), to = part(out, run);
      if (run.fused) {
        cuda::projected_attention_forward(describe(run, rows, weights, biases, s.tokens, to),
                                          rows.data_ptr<float>(), weights.data_ptr<float>(), bias(biases),
                                          to.data_ptr<float>(), current_stream(x));
        continue;
      }
      saved.push_back(linear(rows, weights, biases.numel() > 0 ? biases : Tensor()));
      self_attention_forward(saved.back(), s.tokens, run.shape, to);
    }
    context->save_for_backward(saved);
    context->saved_data["state"] = state;
    return out;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const c10::IValue state = context->saved_data["state"];
    const Saved& s = *static_cast<Saved*>(state.toCapsule().get());
    const Variables saved = context->get_saved_variables();
    const Tensor &x = saved[0], &W = saved[1], &b = saved[2], dout = dense(gradients[0]);
    const Tensor dqkv = at::empty({x.size(0), x.size(1), W.size(1)}, x.options());
    size_t next = 3;
    for (const Run& run : s.runs) {
      const Tensor rows = part(x, run), weights = part(W, run), biases = part(b, run),
                   slopes = part(dout, run), to = part(dqkv, run);
      if (run.fused)
        cuda::projected_attention_backward(describe(run, rows, weights, biases, s.tokens, slopes),
                                           rows.data_ptr<float>(), weights.data_ptr<float>(), bias(biases),
                                           slopes.data_ptr<float>(), {slopes.stride(0), slopes.stride(1)},
                                           to.data_ptr<float>(), {to.stride(0), to.stride(1)},
                                           current_stream(x));
      else
        self_attention_backward(saved[next++], slopes, s.tokens, run.shape, to);
    }
    const Tensor dx = context->needs_input_grad(0) ? at::bmm(dqkv, W) : Tensor();
    if (b.numel() == 0) return {dx, at::bmm(dqkv.transpose(1, 2), x), Tensor(), Tensor()};
    const WeightGradients d = weight_gradients(dqkv, with_ones(x));
    return {dx, d.W, d.b, Tensor()};
  }
};

}  // namespace

Tensor projected_self_attention(const Tensor& x, const Tensor& W, const Tensor& b, int64_t tokens,
                                const HeadShape& shape) {
  const bool tf32 = x.is_cuda() && fused_for(x) && x.dim() == 3 && x.numel() > 0 && tf32_allowed();
  std::vector<Run> runs;
  if (tf32) runs = runs_of(x, tokens, shape);
  if (std::none_of(runs.begin(), runs.end(), [](const Run& run) { return run.fused; }))
    return small_self_attention(linear(x, W, b), tokens, shape);
  auto s = c10::make_intrusive<Saved>();
  s->runs = std::move(runs);
  s->tokens = tokens;
  return ProjectedSelfAttention::apply(
      dense(x), dense(W), b.defined() ? dense(b) : at::empty({0}, x.options()), c10::IValue::make_capsule(s));
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_projected_self_attention(const Tensor& x, const Tensor& W, const MaybeTensor& b, int64_t tokens,
                                     at::IntArrayRef heads, at::ArrayRef<double> scale, int64_t width_v,
                                     bool hard) {
  require_floats(x, "x");
  require_sequences(x, tokens, "x");
  require(W.dim() == x.dim() && x.size(-1) >= 1, "W must have the trials of x, and x at least one column");
  const int64_t width_qk = width_beside(width_v, W.size(-2), "rows of W");
  require_parameter(W, x, {W.size(-2), x.size(-1)}, "W");
  if (b.has_value()) require_parameter(*b, x, {W.size(-2)}, "b");
  return projected_self_attention(x, W, or_none(b), tokens,
                                  head_shape(x, heads, scale, width_qk, width_v, hard, false));
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def(
      "projected_self_attention(Tensor x, Tensor W, Tensor? b, int tokens, int[] heads, float[] scale, "
      "int width_v, bool hard=False) -> Tensor",
      rankscope::call_projected_self_attention);
}
