#include "checkpoint/put_back.h"

#include <ATen/ATen.h>

namespace rankscope {

void put_back(at::Tensor& stored, const Checkpoint::Place& place, const Parameter& p,
              const at::Tensor& value) {
  const Source& source = place.source;
  const at::Tensor numbers = (source.plus != 0 ? value - source.plus : value).to(stored.scalar_type());
  at::Tensor t = source.matrix >= 0 ? stored.select(0, source.matrix) : stored;
  const bool whole = t.numel() == element_count(p) && source.order.empty();
  if (whole && !source.transpose) {
    t.copy_(numbers.reshape(t.sizes()));
    return;
  }
  t = p.shape.size() == 1 ? t.view({-1}) : t.view({t.size(0), -1});
  if (source.transpose) t = t.t();
  if (source.groups == 1 && source.order.empty()) {
    t.narrow(0, source.first_row, p.shape[0]).copy_(numbers.reshape(p.shape));
    return;
  }
  t = t.unflatten(0, {source.groups, t.size(0) / source.groups});
  const int64_t rows = p.shape[0] / source.groups;
  std::vector<int64_t> shape{source.groups, rows};
  if (p.shape.size() > 1) shape.push_back(p.shape[1]);
  if (source.order.empty())
    t.narrow(1, source.first_row, rows).copy_(numbers.reshape(shape));
  else
    t.index_copy_(1, at::tensor(source.order, at::kLong), numbers.reshape(shape));
}

}  // namespace rankscope
