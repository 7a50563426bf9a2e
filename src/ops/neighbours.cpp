#include "ops/neighbours.h"

#include <torch/library.h>

#include <limits>

#include "kernels/cuda/neighbours.h"
#include "ops/checks.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {

using at::Tensor;

Tensor pick(const Tensor& points, const Tensor& scores) {
  const Tensor index = scores.argmax(-1, true);
  std::vector<int64_t> shape = index.sizes().vec();
  shape.back() = points.size(-1);
  return points.gather(-2, index.expand(shape));
}

Neighbours unit_neighbours_reference(const Tensor& points, const Tensor& asks, double sign) {
  const auto unit = [](const Tensor& x) { return x / at::linalg_vector_norm(x, 2, {-1}, true); };
  Neighbours out;
  out.points = unit(points);
  if (asks.defined()) out.asks = unit(asks);
  const Tensor& ask = asks.defined() ? out.asks : out.points;
  out.target = pick(out.points, at::matmul(ask, out.points.transpose(-1, -2)) * sign);
  return out;
}

Neighbours unit_neighbours(const Tensor& points, const Tensor& asks, double sign) {
  if (!points.is_cuda() || !fused_for(points)) return unit_neighbours_reference(points, asks, sign);
  const auto copy = [](const Tensor& x) { return x.clone(at::MemoryFormat::Contiguous); };
  Neighbours out;
  out.points = copy(points);
  if (asks.defined()) out.asks = copy(asks);
  out.target = at::empty_like(asks.defined() ? out.asks : out.points);
  const int64_t count = points.size(-2), d = points.size(-1);
  const int64_t sequences = count * d == 0 ? 0 : points.numel() / (count * d);
  cuda::neighbour_targets(sign > 0 ? cuda::Neighbour::nearest : cuda::Neighbour::farthest, sequences, count,
                          asks.defined() ? asks.size(-2) : count, d, out.points.data_ptr<float>(),
                          asks.defined() ? out.asks.data_ptr<float>() : nullptr, out.target.data_ptr<float>(),
                          current_stream(points));
  return out;
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

// points and asks are sequences of rows; the kernel counts the numbers of one sequence in 32 bits.
void require_points(const Tensor& x, const char* name) {
  require_floats(x, name);
  require(x.dim() >= 2 && x.size(-2) >= 1 && x.size(-1) >= 1,
          fmt::format("{} must be [.., rows, width] with at least one row and one column", name));
  require(x.size(-2) <= std::numeric_limits<int32_t>::max() / x.size(-1),
          fmt::format("a sequence of {} has more than 2^31 numbers", name));
}

std::tuple<Tensor, MaybeTensor, Tensor> call_unit_neighbours(const Tensor& points, const MaybeTensor& asks,
                                                             bool farthest) {
  require_points(points, "points");
  if (asks.has_value()) {
    require_points(*asks, "asks");
    require_alike(*asks, points, "asks");
    std::vector<int64_t> sizes = points.sizes().vec();
    sizes[sizes.size() - 2] = asks->size(-2);
    require(asks->sizes() == at::IntArrayRef(sizes), "asks must have the sequences and the width of points");
  }
  Neighbours found =
      unit_neighbours(points.detach(), asks.has_value() ? asks->detach() : Tensor(), farthest ? -1.0 : 1.0);
  return {found.points, asks.has_value() ? MaybeTensor(found.asks) : MaybeTensor(), found.target};
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def(
      "unit_neighbours(Tensor points, Tensor? asks, bool farthest=False) -> "
      "(Tensor unit_points, Tensor? unit_asks, Tensor target)",
      rankscope::call_unit_neighbours);
}
