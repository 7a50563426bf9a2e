#include "train/diagnose.h"

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
  return {median(angles), median(scales), median(temperatures), median(ranks)};
}

}  // namespace rankscope
