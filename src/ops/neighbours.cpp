#include "ops/neighbours.h"

#include "kernels/cuda/neighbours.h"
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

}  // namespace rankscope
