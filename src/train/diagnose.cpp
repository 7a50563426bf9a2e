#include "train/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/stats.h"
#include "train/layout.h"

namespace rankscope {
namespace {

at::Tensor matrix(const Layout& layout, const std::vector<float>& parameters, const std::string& name) {
  for (const Slot& slot : layout.slots())
    if (slot.parameter.name == name)
      return at::tensor(at::ArrayRef<float>(parameters.data() + slot.offset,
                                            static_cast<size_t>(element_count(slot.parameter))),
                        at::kFloat)
          .to(at::kDouble)
          .view(slot.parameter.shape);
  return {};
}

double effective_rank(const at::Tensor& singular) {
  const at::Tensor p = singular / singular.sum();
  return std::exp(-(p * p.clamp_min(1e-300).log()).sum().item<double>());
}

// tr(V_h) / d for each of the heads looked at.
std::vector<double> value_traces(const ModelSpec& n, const Layout& layout,
                                 const std::vector<float>& parameters, int64_t d, int64_t stride) {
  const AttentionSpec& a = n.blocks.front().attention();
  const at::Tensor W_O = matrix(layout, parameters, "blocks.0.attn.W_O");
  const at::Tensor W_V = matrix(layout, parameters, "blocks.0.attn.W_V");
  const int64_t rows = a.value_map ? a.d_v : n.width, side = W_O.defined() ? std::min(d, W_O.size(0)) : 0;
  std::vector<double> out;
  if (side == 0 || W_O.size(1) < a.heads * rows || a.value_map != W_V.defined()) return out;
  if (a.value_map && W_V.size(0) < a.heads * rows) return out;  // fewer value heads than heads
  for (int64_t h = 0; h < a.heads; h += stride) {
    const at::Tensor o = W_O.narrow(1, h * rows, rows).narrow(0, 0, side);
    const at::Tensor v = a.value_map ? W_V.narrow(0, h * rows, rows).narrow(1, 0, side) : at::Tensor();
    const at::Tensor trace = a.value_map ? (o * v.t()).sum() : o.narrow(1, 0, side).diagonal().sum();
    out.push_back(trace.item<double>() / static_cast<double>(d * a.modules));
  }
  return out;
}

double answer_gain(const ModelSpec& n, const Layout& layout, const std::vector<float>& parameters) {
  const BlockSpec& block = n.blocks.back();
  const BranchSpec& last = block.branches.back();
  if (last.behind.kind != NormKind::unit || n.final_norm.there()) return std::nan("");
  return matrix(layout, parameters, fmt::format("blocks.{}.{}.w", block.weights, last.norm_name))
      .item<double>();
}

}  // namespace

Alignment alignment(const ModelSpec& n, const std::vector<float>& parameters) {
  const Layout layout(n);
  const at::Tensor W_Q = matrix(layout, parameters, "blocks.0.attn.W_Q");
  const at::Tensor W_K = matrix(layout, parameters, "blocks.0.attn.W_K");
  const AttentionSpec& a = n.blocks.front().attention();
  const int64_t d = n.embedding.point_map ? n.width : n.embedding.points;
  const double root = std::sqrt(static_cast<double>(d));
  std::vector<double> angles, scales, temperatures, ranks;
  // The spectra of a few hundred heads tell as much as those of thousands.
  const int64_t stride = std::max<int64_t>(1, a.heads / 256);
  for (int64_t h = 0; h < a.heads; h += stride) {
    const at::Tensor q = W_Q.narrow(0, h * a.d_qk, a.d_qk).narrow(1, 0, d);
    const at::Tensor k = W_K.narrow(0, h * a.d_qk, a.d_qk).narrow(1, 0, d);
    const double norm = at::linalg_vector_norm(at::mm(q.t(), k), 2).item<double>();
    const double trace = (q * k).sum().item<double>();
    angles.push_back(
        norm == 0 ? 90.0 : std::acos(std::clamp(trace / (norm * root), -1.0, 1.0)) * 180 / std::numbers::pi);
    scales.push_back(norm / root);
    temperatures.push_back(a.scale * trace / static_cast<double>(d));
    ranks.push_back(norm == 0 ? 0.0 : effective_rank(at::linalg_svdvals(at::mm(q.t(), k))));
  }
  const std::vector<double> traces = value_traces(n, layout, parameters, d, stride);
  const auto [least, most] = std::minmax_element(traces.begin(), traces.end());
  const double nan = std::nan("");
  return {.angle = median(angles),
          .scale = median(scales),
          .temperature = median(temperatures),
          .effective_rank = median(ranks),
          .ov_least = traces.empty() ? nan : *least,
          .ov_most = traces.empty() ? nan : *most,
          .answer_gain = answer_gain(n, layout, parameters)};
}

}  // namespace rankscope
