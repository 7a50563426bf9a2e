#include "pass/pooled_rows.h"

#include <ATen/ATen.h>

namespace rankscope {
namespace {

// [count, side]: 1 where position first + i of T lies in that of `side` cells: cell b begins at b T / side.
at::Tensor cells(int64_t first, int64_t count, int64_t T, int64_t side, const at::TensorOptions& on) {
  const at::Tensor position = at::arange(first, first + count, on.dtype(at::kLong));
  const at::Tensor cell = at::div((position + 1) * side - 1, T, "floor");
  return cell.unsqueeze(1).eq(at::arange(side, on.dtype(at::kLong))).to(at::kDouble);
}

}  // namespace

PooledRows pooled_rows(const at::Tensor& p, int64_t first_row, const Mask& mask, const MapSides& side) {
  const at::Tensor wide = p.to(at::kDouble);
  const int64_t T = mask.length, Q = mask.queries, rows = side.queries;
  const at::TensorOptions on = wide.options();
  const at::Tensor begins = at::div(at::arange(rows + 1, on.dtype(at::kLong)) * Q, rows, "floor");
  const at::Tensor share =
      (begins.narrow(0, 1, rows) - begins.narrow(0, 0, rows)).to(at::kDouble).reciprocal_();
  const at::Tensor mean = (cells(first_row, p.size(1), Q, rows, on) * share).t();  // [rows, R]
  const at::Tensor key = at::arange(T, on);
  const at::Tensor end =
      mask.window > 0 ? (key + mask.window).clamp_max_(mask.queries) : at::full_like(key, mask.queries);
  const at::Tensor queries = mask.causal ? end - key : end;
  return {at::matmul(mean, at::matmul(wide, cells(0, T, T, side.keys, on))), wide.sum(1) / queries};
}

}  // namespace rankscope
