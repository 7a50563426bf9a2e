#include "attention/support/sink_shift.h"

#include <ATen/ATen.h>

namespace rankscope {

SinkShift::SinkShift(const AttentionInput& in) : scores_(in), nats_(number_option(in.spec, "nats")) {
  if (in.spec.sinks) sinks_ = in.weights.get(in.name + ".sinks");
  const at::Tensor start = in.key_positions.amin(1, true);
  first_ = in.key_positions.eq(start).unsqueeze(1).unsqueeze(1);
  places_ = in.positions - start;
  key_places_ = in.key_positions - start;
}

SinkShift::Rows SinkShift::rows(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
  Rows out;
  const at::Tensor scores = scores_.tile(first, count, first_row, rows);
  out.plain = masked_softmax(scores.clone(), scores_.spec(), first_row, nullptr, sinks_);
  if (scores_.spec().positions)
    out.sink = first_.narrow(0, first, count).expand_as(out.plain);
  else
    out.sink = at::zeros_like(out.plain, at::kBool).scatter_(3, out.plain.argmax(3, true), true);
  out.shifted = masked_softmax(scores + nats_ * out.sink.to(scores.scalar_type()), scores_.spec(), first_row,
                               &out.scores, sinks_);
  return out;
}

at::Tensor SinkShift::noise(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
  const at::Tensor query = places_.narrow(0, first, count).narrow(1, first_row, rows).to(at::kDouble);
  const at::Tensor key = key_places_.narrow(0, first, count).to(at::kDouble);
  // The digits of a sine far behind the point: no table, no state, the same on every device to 1e-9.
  const at::Tensor wave = (query.unsqueeze(2) * 12.9898 + key.unsqueeze(1) * 78.233).sin_().mul_(1000.0);
  return (wave - wave.floor()).unsqueeze(1);
}

}  // namespace rankscope
