#include "operator/attention_bound.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attention/variant.h"
#include "parts/program.h"
#include "theory/collapse_bound.h"

namespace rankscope {
namespace {

double norm_1(const at::Tensor& a) { return a.abs().sum(0).max().item<double>(); }
double norm_inf(const at::Tensor& a) { return a.abs().sum(1).max().item<double>(); }

at::Tensor head_rows(const at::Tensor& W, int64_t head, int64_t width) {
  return W.narrow(0, head * width, width);
}

}  // namespace

AttentionBound attention_bound(const SplitTokens& tokens, const AttentionSpec& spec, const Weights& w) {
  const at::Tensor R = tokens.unit();
  AttentionBound out{tokens.residual().log_l1inf, 0, 0, 0, 0, 0};
  double qk = 0, ov_1 = 0, ov_inf = 0, sums = 0, ranges = 0, spread = 0, score = 0;
  for (int64_t h = 0; h < spec.heads; ++h) {
    const int64_t kv = h / (spec.heads / spec.kv_heads);
    const at::Tensor W_Q = head_rows(w.get("attn.W_Q"), h, spec.d_qk);
    const at::Tensor W_K = head_rows(w.get("attn.W_K"), kv, spec.d_qk);
    const at::Tensor W_V = head_rows(w.get("attn.W_V"), kv, spec.d_v);
    const at::Tensor W_O = w.get("attn.W_O").narrow(1, h * spec.d_v, spec.d_v);
    qk = std::max(qk, norm_1(W_Q.t().matmul(W_K)));
    const at::Tensor W_h = W_V.t().matmul(W_O.t());
    ov_1 = std::max(ov_1, norm_1(W_h));
    ov_inf = std::max(ov_inf, norm_inf(W_h));
    // gamma is a ratio: the residual's own scale drops out of it.
    const at::Tensor E = at::linear(R, W_Q).matmul(at::linear(R, W_K).t()) * spec.scale;
    const at::Tensor D = E.amax(1) - E.amin(1);
    const double sum = D.sum().item<double>(), most = D.max().item<double>(), e1 = norm_1(E);
    if (e1 > 0) sums = std::max(sums, sum / (2 * e1)), ranges = std::max(ranges, most / (2 * e1));
    spread = std::max(spread, most);
    score = std::max(score, E.abs().max().item<double>());
  }
  const double square = std::exp(2 * tokens.log_scale());
  out.spread = spread * square;
  out.score = score * square;
  out.gamma = std::sqrt(sums * ranges);
  out.beta = qk * std::sqrt(ov_1 * ov_inf);
  out.c = cubic_constant(out.gamma, out.beta, static_cast<double>(spec.heads), spec.scale,
                         static_cast<double>(R.size(0)));
  return out;
}

bool bound_applies(const BlockSpec& block) {
  const BranchSpec* b = block.attention_branch();
  if (b == nullptr) return false;
  const Program program = program_of(*b, 1);  // the width matters to no answer here
  return b->reads.empty() && only_tokens_decide(*b->attention()) && program.writes_heads() &&
         program.maps_tokens();
}

}  // namespace rankscope
