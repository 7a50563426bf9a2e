// Softmax with a number of nats added to every query's score of the first key, where sinks are: a dose of
// more or less sink. shifted_control moves the same mass elsewhere.
#include "attention/support/sink_shift.h"

namespace rankscope {
namespace {

class ShiftedSink : public PreparedAttention {
 public:
  explicit ShiftedSink(const AttentionInput& in) : shift_(in) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    const SinkShift::Rows r = shift_.rows(first, count, first_row, rows);
    if (kept != nullptr) *kept = r.scores;
    return r.shifted;
  }

 private:
  SinkShift shift_;
};

}  // namespace

extern const AttentionVariant attention_shifted_sink{
    .name = "shifted_sink",
    .summary = "softmax with some nats more, or fewer, on the first key: a dose of sink",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = true,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<ShiftedSink>(in);
    },
    .options = {{.name = "nats",
                 .otherwise = "1",
                 .low = -100,
                 .high = 100,
                 .meaning = "added to the score of the first key"}}};

}  // namespace rankscope
