// The controls of shifted_sink. That moves mass: with more nats from the other keys to the first one, with
// fewer from the first one to the others. Here the same mass is taken from the same keys and goes nowhere
// (to a key without a value), evenly to all keys a query sees, or to one of them, drawn at random.
#include <ATen/ATen.h>

#include "attention/support/sink_shift.h"

namespace rankscope {
namespace {

class ShiftedControl : public PreparedAttention {
 public:
  explicit ShiftedControl(const AttentionInput& in) : shift_(in), to_(word_option(in.spec, "to")) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* /*kept*/) override {
    const SinkShift::Rows r = shift_.rows(first, count, first_row, rows);
    const at::Tensor left = at::minimum(r.plain, r.shifted);
    if (to_ == "nothing") return left;
    const at::Tensor moved = (r.shifted - left).sum(3, true);
    const at::Tensor seen = r.scores.ne(-INFINITY);
    if (to_ == "uniform") return left + moved * seen / seen.sum(3, true);
    // The first key only where there is no other.
    const at::Tensor drawn = shift_.noise(first, count, first_row, rows)
                                 .expand_as(left)
                                 .masked_fill(r.sink, -0.5)
                                 .masked_fill(seen.logical_not(), -1.0)
                                 .argmax(3, true);
    return left + at::zeros_like(left).scatter_(3, drawn, 1.0) * moved;
  }

 private:
  SinkShift shift_;
  std::string to_;
};

}  // namespace

extern const AttentionVariant attention_shifted_control{
    .name = "shifted_control",
    .summary = "the mass that shifted_sink moves, to no key, evenly to all, or to a random one",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<ShiftedControl>(in);
    },
    .options = {{.name = "nats",
                 .otherwise = "1",
                 .low = -100,
                 .high = 100,
                 .meaning = "added to the score of the first key, to know how much to move"},
                {.name = "to",
                 .otherwise = "nothing",
                 .words = {"nothing", "uniform", "random"},
                 .meaning = "where the mass goes"}}};

}  // namespace rankscope
