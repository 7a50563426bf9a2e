// From what an evaluator judged to rows of the result table.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "importance/evaluator.h"

namespace rankscope {

/// Where a number belongs: which columns of a row are set.
struct RowPlace {
  std::string site;
  int64_t layer = -1, head = -1, depth = -1;
};

class Filing {
 public:
  /// `numbers`: of the evaluator's samples in the scan.
  Filing(const Evaluator& evaluator, std::vector<int64_t> numbers, ResultTable& table)
      : e_(evaluator), numbers_(std::move(numbers)), table_(table) {}

  /// stem_kl (stem_error without a head) and stem_loss, the latter as its difference from the full network's.
  void judged(const std::string& stem, const RowPlace& place, const Judged& j);
  /// A mean over samples; by tokens where it is a loss.
  void samples(const std::string& metric, const RowPlace& place, const std::vector<double>& values,
               bool by_tokens);
  /// One number without an error.
  void number(const std::string& metric, const RowPlace& place, double value);

  std::string output_metric(const std::string& stem) const;
  /// What the loss gains, by sample.
  std::vector<double> loss_gained(const Judged& j) const;
  double mean_loss_gained(const Judged& j) const;
  /// Whether the text surely loses more than `epsilon` nats, however little the output changes: a network may
  /// stay sure of another token.
  bool loses_text(const Judged& j, double epsilon) const;
  const Evaluator& evaluator() const { return e_; }

 private:
  const Evaluator& e_;
  std::vector<int64_t> numbers_;
  ResultTable& table_;
};

}  // namespace rankscope
