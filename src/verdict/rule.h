// The verdict from the inside: what a rule is, what it sees, and where it puts its sentences. One file of
// rules/ per rule, and the file's name is its registration: rules/collapse.cpp defines rule_collapse.
//
// Every sentence carries its number, the threshold it was held against and what it stands beside; where the
// evidence does not decide it says "not known" and why. Where heads are counted, the share of false ones
// among those counted is controlled instead of the error of each (sides_of).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verdict/verdict.h"

namespace rankscope::verdict {

/// Where a value stands beside a threshold: as surely away from it as two standard errors are of many samples
/// (by Student's t: 2.4 of 8 samples, 3.3 of 4), or unclear. A value without an error (one sample has none)
/// is unclear: a missing error is not zero.
enum class Side { below, above, unclear };
Side side(double value, double error, int64_t samples, double threshold);
/// A geometric mean is held against it in logarithms, whose mean and error it is made of: a few samples near
/// zero pull it down, and its own error with it.
Side side(const Row& r, double threshold);

/// Whether samples are averaged as a geometric mean (lenses: Mean::geometric).
bool is_geometric(std::string_view metric);

/// The same for many rows at once: each is tested against the threshold on either side (Student's t over its
/// samples), and Benjamini-Hochberg keeps the expected share of false ones among those decided at
/// kFalseShare.
constexpr double kFalseShare = 0.01;
std::vector<Side> sides_of(const std::vector<const Row*>& rows, double threshold);
Claim::Answer answer_of(Side s, Side yes);

/// The rows by variant and metric, so that a question costs no walk through the whole table. NaN is not
/// evidence.
class Evidence {
 public:
  explicit Evidence(const ResultTable& table);

  const std::vector<const Row*>& all(std::string_view variant, std::string_view metric) const;
  const Row* any(std::string_view variant, std::string_view metric) const;
  const Row* at_site(std::string_view variant, std::string_view metric, std::string_view site,
                     std::string_view tokens) const;
  const Row* of_head(std::string_view variant, std::string_view metric, int layer, int head) const;
  const std::vector<std::string_view>& variants() const { return variants_; }  // in order of appearance
  /// What single samples gave; empty where none were kept.
  const std::vector<const SampleRow*>& samples(std::string_view variant, std::string_view metric) const;
  /// Of one site, by sample.
  std::map<int64_t, double> samples_at(std::string_view variant, std::string_view metric,
                                       std::string_view site, std::string_view tokens) const;
  /// Their values for every head, by layer and head.
  std::map<std::pair<int, int>, std::vector<double>> samples_of_heads(std::string_view variant,
                                                                      std::string_view metric) const;

  /// What values are held against: "baseline" (another checkpoint), else "null:init", else "".
  std::string_view baseline() const { return baseline_; }
  std::string baseline_name() const;

 private:
  std::map<std::pair<std::string_view, std::string_view>, std::vector<const Row*>> rows_;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<const SampleRow*>> samples_;
  std::vector<std::string_view> variants_;
  std::string_view baseline_;
};

/// One place where tokens are judged.
struct Place {
  std::string site;
  int layer;  // the model's depth for the final norm
};

/// Where tokens are read, in order of depth: what a block leaves (post-norm), or what the next one sees
/// (pre-norm).
struct Path {
  bool pre_norm = false;
  int final_layer = 0;
  std::vector<Place> places;

  explicit Path(const ModelSpec& spec);
  std::string one(int layer) const;
};

struct Case {
  const Evidence evidence;
  const ModelSpec& spec;
  const Thresholds& limits;
  const Measured& measured;
  const Path path;
  std::vector<Finding> findings;

  Finding& say(std::string topic, std::string sentence, bool known = true);
  double limit(std::string_view name) const { return limits[name]; }
  bool too_short() const { return static_cast<double>(measured.shortest) < limit("short_text"); }
  /// "the shortest sample has 1 content token, and so few decide nothing (short_text 8)".
  std::string short_text() const;
  /// Fewer samples or tokens than this decide nothing: why, in words; empty where there are enough.
  std::string too_few(const Row& r) const;
  /// Residuals below this are what rounding leaves.
  double floor() const { return 8 * measured.epsilon; }
  /// Whether --dtype float64 is something to try.
  bool could_be_finer() const { return measured.epsilon > 0x1p-52; }
  /// "4.2e-05", or where that is rounding "the rounding floor (1e-06)".
  std::string residual_text(double x) const;
  /// The residual of the content tokens behind the norm that reads them, without its gain and bias; in tables
  /// from before that was measured, with them. Or nullptr.
  const Row* residual(std::string_view variant, const Place& p) const;
  /// The residual at the place itself, behind gain and bias, of all channels.
  const Row* at_place(std::string_view variant, const Place& p) const;
  /// The residual of the massive channels that it leaves out, or nullptr.
  const Row* left_out(std::string_view variant, const Place& p) const;
  /// What sentences call it: "residual" alone is what tables show, gain and bias included.
  std::string_view residual_name() const;
  /// The heads that were looked at, and of which this metric says nothing, in order.
  std::vector<std::string> heads_without(std::string_view metric) const;
  /// ", of the 4 of 8 heads that have a number"; empty where all have one that were looked at.
  std::string of_those(std::string_view metric) const;
  /// ", baseline 0.43" or ", no baseline".
  std::string beside(const Row* r) const;
  /// What the variant costs the output, in nats or, without a head, as a share of the last state; or nullptr.
  const Row* output_cost(std::string_view variant) const;
  /// How much more the text loses with the variant, over pairs of samples; a row without samples where no
  /// loss was measured.
  Row loss_rise(std::string_view variant) const;
  /// The threshold of such a row.
  double epsilon_of(const Row& cost) const;
};

/// Says which pairs of heads stand in for each other: rows `stand_in` of the variants with this prefix
/// (importance/stand_ins.h). What the pairs are is `of_them`; false where none was tried.
bool say_stand_ins(Case& c, std::string_view prefix, std::string_view topic, std::string_view of_them);

/// Why rows like this decide nothing, "too near epsilon for their errors" or that one sample has none, and
/// what would decide.
std::string why_unclear(const Row& r, std::string_view near);

/// Puts the numbers of a row behind a sentence.
void about(Finding& f, const Row& r, double threshold, const Row* baseline = nullptr);

// Words.
std::string number(double x);          // three significant digits, or a whole number up to a million
std::string with_error(const Row& r);  // "0.41 ± 0.02"
std::string count_of(double n, std::string_view what);       // "2 channels"
std::string label(const Row& r);                             // "L5H3"
std::string list_of(const std::vector<std::string>& names);  // the first few, and how many more
std::string ranges(const std::vector<int>& sorted);          // "3-5, 7 and 9"
std::string layers_text(const std::vector<int>& sorted);     // "layers 3-5 and 7", "layer 2"

}  // namespace rankscope::verdict

namespace rankscope {

/// One question about a network, and the sentences that answer it.
struct Rule {
  int order;                  // of its sentences among the other rules'
  std::string_view topic;     // Finding::topic of its sentences
  std::string_view question;  // what it answers
  std::vector<ThresholdInfo> thresholds;
  void (*judge)(verdict::Case&);
};

/// Every rule, alphabetically by file (generated from the file names).
const std::vector<const Rule*>& rules();

/// The same in the order in which they speak.
std::vector<const Rule*> rules_in_order();

}  // namespace rankscope
