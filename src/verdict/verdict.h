// The verdict: a finished table in, sentences out. It reads rows and nothing else, so it knows nothing of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/table.h"
#include "spec/model.h"

namespace rankscope {

/// The numbers the verdict compares with. Each is printed with the sentence that used it and can be set:
/// `--threshold collapse=0.05`.
struct Thresholds {
  double collapse = 0.1;  // trimmed relative residual below this: the layer's tokens are nearly all alike
  double collapse_ratio = 0.5;  // ... and below this share of the baseline, where there is one
  double sink = 0.3;            // mass above uniform that makes a head a sink (design: sink_ratio)
  double dead = 0.01;           // head_output_rel below this: a candidate for a dead head
  double epsilon = 1e-3;        // output_kl below this: taking the head out changes nothing
  double low_rank = 0.1;        // qk/ov effective rank below this share of the head's width
  double massive = 1000;        // massive_ratio above this: massive activations
  double short_text = 8;        // fewer content tokens than this: the evidence does not decide
};

/// One sentence of the verdict with the numbers behind it.
struct Finding {
  std::string topic;     // "collapse", "support", "sink", "head", "rank", "massive", "input"
  std::string sentence;  // carries its number, its threshold and its baseline
  bool known = true;     // false: the evidence does not decide, and the sentence says so
  int layer = -1, head = -1;
  double value = kNone, baseline = kNone, threshold = kNone;
  bool measured = true;  // false: no lens looked; left out where the user chose the lenses
};

/// The verdict in words, from the table alone. `output_kl` rows of variants named "-head:L5H3" and
/// "-heads:L5H3+L7H0" are what --ablate measured.
std::vector<Finding> judge(const ResultTable& table, const ModelSpec& spec, const Thresholds& thresholds,
                           int64_t shortest_content);

}  // namespace rankscope
