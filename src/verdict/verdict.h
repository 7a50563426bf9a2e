// The verdict: a finished table in, sentences out. It reads rows and nothing else, so it knows nothing of
// torch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "spec/model.h"

namespace rankscope {

/// A number that a rule compares with. It stands beside the rule that owns it (verdict/rules/).
struct ThresholdInfo {
  std::string_view name;
  double value;           // by default
  std::string_view unit;  // "share", "nats", "tokens"
  std::string_view meaning;
};

/// Every threshold, in the order of the rules.
const std::vector<ThresholdInfo>& threshold_infos();

/// The numbers the verdict compares with: the rules' defaults, and what `--threshold collapse=0.05` set. Each
/// is printed with the sentence that used it. A name that no rule has is an error with the nearest that one
/// has.
class Thresholds {
 public:
  double operator[](std::string_view name) const;
  void set(std::string_view name, double value);

 private:
  std::map<std::string, double, std::less<>> set_;
};

/// What a sentence says of one subject: "sink L3H1" yes, "alike layer 5" not known.
struct Claim {
  enum class Answer { yes, no, unknown };
  std::string subject;
  Answer answer;
};

/// One sentence of the verdict with the numbers behind it.
struct Finding {
  std::string topic;     // "collapse", "support", "sink", "head", "rank", "massive", "input"
  std::string sentence;  // carries its number, its threshold and its baseline
  bool known = true;     // false: the evidence does not decide, and the sentence says so
  int layer = -1, head = -1;
  double value = kNone, baseline = kNone, threshold = kNone;
  bool measured = true;  // false: no lens looked; left out where the user chose the lenses
  bool asked = false;    // about a variant that the user asked for: told in full, also where nothing is found
  std::vector<Claim> claims = {};
};

/// What the numbers were made of.
struct Measured {
  int64_t shortest = 0;      // content tokens of the shortest sample
  double epsilon = 0x1p-23;  // of the arithmetic: residuals of a few of these are rounding
  /// Variants that were followed only so far: where their activations were not finite.
  std::map<std::string, std::string, std::less<>> not_finite = {};
  /// Of streams whose samples have other lengths: that of each, by name.
  std::map<std::string, int64_t, std::less<>> shortest_of = {};
};

/// The verdict in words, from the table alone. Rows of variants named "-head-mean:L5H3", "-head-bare:L5H3"
/// and
/// "-heads-mean:L5H3+L7H0" are what --ablate measured.
std::vector<Finding> judge(const ResultTable& table, const ModelSpec& spec, const Thresholds& thresholds,
                           const Measured& measured);

}  // namespace rankscope
