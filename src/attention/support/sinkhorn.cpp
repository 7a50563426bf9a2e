#include "attention/support/sinkhorn.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace rankscope {
namespace {

// Rows of scores that are held at once, so that a long text never holds a whole matrix.
constexpr int64_t kRows = 256;

}  // namespace

DoublyNormalised::DoublyNormalised(const AttentionInput& in, int64_t rounds) : scores_(in) {
  refuse_causal(in.spec);
  v_ = over_queries({});
  for (int64_t round = 1; round < rounds; ++round) v_ = over_queries(over_keys());
}

at::Tensor DoublyNormalised::seen(int64_t first_row, int64_t rows) const {
  const at::Tensor scores = scores_.tile(0, scores_.samples(), first_row, rows);
  const at::Tensor hidden = hidden_keys(scores_.spec(), first_row, rows, scores_.keys(), scores);
  return hidden.defined() ? scores.masked_fill(hidden, -INFINITY) : scores;
}

at::Tensor DoublyNormalised::over_queries(const at::Tensor& u) const {
  at::Tensor v;
  for (int64_t row = 0; row < scores_.queries(); row += kRows) {
    const int64_t rows = std::min(kRows, scores_.queries() - row);
    at::Tensor scores = seen(row, rows);
    if (u.defined()) scores = scores - u.narrow(2, row, rows).unsqueeze(3);
    const at::Tensor part = at::logsumexp(scores, {2});
    v = v.defined() ? at::logaddexp(v, part) : part;
  }
  // A key that no query sees has nothing to share out.
  return v.masked_fill(v.eq(-INFINITY), 0.0);
}

at::Tensor DoublyNormalised::over_keys() const {
  std::vector<at::Tensor> u;
  for (int64_t row = 0; row < scores_.queries(); row += kRows)
    u.push_back(at::logsumexp(seen(row, std::min(kRows, scores_.queries() - row)) - v_.unsqueeze(2), {3}));
  return at::cat(u, 2);
}

at::Tensor DoublyNormalised::pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                                     at::Tensor*) {
  const at::Tensor scores =
      scores_.tile(first, count, first_row, rows) - v_.narrow(0, first, count).unsqueeze(2);
  return masked_softmax(scores, scores_.spec(), first_row);
}

namespace {

class Prefix : public PreparedAttention {
 public:
  explicit Prefix(const AttentionInput& in) : scores_(in) {
    if (!in.spec.causal) all_.emplace(in, 1);
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    if (all_) return all_->pattern(first, count, first_row, rows, nullptr);
    // Sums over the rows before this tile, then one by one inside.
    at::Tensor before;
    for (int64_t row = 0; row < first_row; row += kRows) {
      const at::Tensor part =
          at::logsumexp(seen(first, count, row, std::min(kRows, first_row - row)), {2}, true);
      before = before.defined() ? at::logaddexp(before, part) : part;
    }
    const at::Tensor scores = seen(first, count, first_row, rows);
    at::Tensor v = at::logcumsumexp(scores.masked_fill(scores.eq(-INFINITY), kNothing), 2);
    if (before.defined()) v = at::logaddexp(v, before);
    return masked_softmax(scores_.tile(first, count, first_row, rows) - v, scores_.spec(), first_row);
  }

 private:
  static constexpr double kNothing = -1e30;  // exp of it is 0, and differences stay numbers

  at::Tensor seen(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
    const at::Tensor scores = scores_.tile(first, count, first_row, rows);
    const at::Tensor hidden = hidden_keys(scores_.spec(), first_row, rows, scores_.keys(), scores);
    return hidden.defined() ? scores.masked_fill(hidden, kNothing) : scores;
  }

  Scores scores_;
  std::optional<DoublyNormalised> all_;  // where there is no mask
};

}  // namespace

std::unique_ptr<PreparedAttention> prepare_prefix_normalised(const AttentionInput& in) {
  return std::make_unique<Prefix>(in);
}

}  // namespace rankscope
