// What the two files on sinks share: a softmax, and the same with so many nats more on the score of one key.
#pragma once

#include "attention/support/scores.h"

namespace rankscope {

/// The key is the first one. Where positions are left out there is no first key, and each query's strongest
/// one takes its place. A query that may not see the key, because of a window, keeps its softmax.
class SinkShift {
 public:
  explicit SinkShift(const AttentionInput& in);

  struct Rows {          // [count, H, rows, T'] each
    at::Tensor plain;    // the softmax as it is
    at::Tensor shifted;  // with the nats of the option `nats`
    at::Tensor scores;   // of the second: -inf where a key is hidden
    at::Tensor sink;     // true at the key
  };
  Rows rows(int64_t first, int64_t count, int64_t first_row, int64_t rows) const;

  /// A key for every query that looks random and is a function of the two places alone, [count, 1, rows, T'].
  at::Tensor noise(int64_t first, int64_t count, int64_t first_row, int64_t rows) const;

 private:
  Scores scores_;
  double nats_;
  at::Tensor sinks_;                // [H] scores of the learned key without a value, where there is one
  at::Tensor first_;                // [S, 1, 1, T'] true at the first key
  at::Tensor places_, key_places_;  // [S, T], [S, T'], from the first key on
};

}  // namespace rankscope
