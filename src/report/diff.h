// Two scans of the same tokens, compared pair by pair.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "report/read.h"
#include "report/terminal.h"

namespace rankscope {

/// What one row of metrics.csv became. `a` and `b` are the rows' own values, or, where a sample has a value
/// in one of the two scans only, the means of the samples that have one in both.
struct Change {
  Name variant, site, metric, tokens;
  int32_t layer = -1, head = -1;
  double a = kNone, b = kNone;
  double delta = kNone;    // b - a
  double stderr_ = kNone;  // of the paired difference; NaN where no samples stand behind the values
  int64_t n = 0;           // pairs
  int64_t unpaired = 0;    // samples that have a value in one of the scans only: left out
  Name stream = {};

  /// Change over its standard error; infinite for a change behind which no samples stand (weights), 0 for
  /// none and where one pair tells nothing of its error.
  double errors() const;
  /// The same as a normal deviate, by which changes of different numbers of pairs can be compared: 61
  /// standard errors of two pairs are less sure than 45 of twelve.
  double sureness() const;
  /// Change over the mean size of the two values: from 0 to 2.
  double relative() const;
};

struct ScanDiff {
  std::string a, b;               // names of the folders
  std::vector<Change> changes;    // the surest first; those of weights alone behind what is clear, by size
  size_t only_a = 0, only_b = 0;  // rows without a partner
  std::vector<std::string> notes = {};  // metrics of which the two hold different versions
  size_t comparisons = 0;               // numbers that differ, with pairs of samples behind them
  size_t untested = 0;                  // numbers of all samples together that differ
  double expected_by_chance = 0;        // that many of them would be clear if nothing had changed
  size_t differing = 0;                 // rows whose numbers are not the same, clearly or not
  size_t moved = 0;                     // positions, tokens and channels that differ: named, never ranked
};

/// Whether the manifests say that both read the same tokens.
bool same_tokens(const SavedResults& a, const SavedResults& b);

/// Refuses scans of different token ids: their numbers have nothing to do with each other.
ScanDiff compare(const SavedResults& a, const SavedResults& b);

void print_diff(const ScanDiff& diff, size_t most, const TerminalStyle& style, std::ostream& out);

}  // namespace rankscope
