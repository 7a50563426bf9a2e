// Runs planted networks through the pass and the verdict, and counts what is said against what is true.
#pragma once

#include "bank/gauge.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "pass/variants.h"
#include "scan/ablate.h"
#include "scan/fisher.h"
#include "scan/use.h"
#include "verdict/verdict.h"

namespace rankscope::bank {

using Answers = std::map<std::string, Claim::Answer>;

struct Said {
  Answers answers;
  std::vector<std::string> sentences;
  std::vector<at::Tensor> output;
  ResultTable table;
};

constexpr uint64_t kNullSeed = 5;

inline Said ask(Planted& p) {
  ScanRequest request;
  request.off = p.off;
  request.rank = p.rank;
  std::unique_ptr<WeightSource> random;
  PassPlan plan;
  plan.variants = make_variants(request, p.spec);
  plan.sources = {p.weights.get()};
  plan.inputs = {make_batches(p.samples, p.spec, 8)};
  std::vector<std::string> lenses{"readers", "margins", "head_writes"};
  if (!p.off.empty()) lenses.insert(lenses.end(), {"normed", "trimmed"});
  if (p.channels) lenses.emplace_back("massive");
  if (p.maps) lenses.emplace_back("circuits");
  if (p.null) {
    lenses.emplace_back("logits");
    random = random_source(p.spec, kNullSeed, "float32", "cpu");
    plan.sources.push_back(random.get());
    plan.variants.push_back({"null:init", p.spec, 1, 0});
  }
  plan.lenses = choose_lenses(lenses);
  plan.layers.assign(static_cast<size_t>(p.spec.depth()), true);
  ResultTable table;
  std::vector<std::string> notes, names;
  std::vector<FinalState> states = run_pass(plan, table, notes, {});
  std::vector<const FinalState*> others;
  for (size_t i = 1; i < states.size(); ++i)
    if (plan.variants[states[i].variants.front()].source == 0) others.push_back(&states[i]);
  compare_outputs(states.front(), plan, others, plan, table, notes);
  const Ablation at{*p.weights, p.samples, plan.inputs.front(), plan.layers, p.limits, {}};
  if (p.ablate) ablate_heads(at, table, notes, names);
  if (p.use) measure_use(at, table, notes);
  if (p.fisher) measure_fisher(at, kNullSeed, table);
  Said said;
  for (const Finding& f :
       judge(table, p.spec, p.limits, {static_cast<int64_t>(p.samples.front().ids.size()) - 1})) {
    said.sentences.push_back(fmt::format("{}{}: {}", f.known ? "" : "? ", f.topic, f.sentence));
    for (const Claim& c : f.claims) said.answers[c.subject] = c.answer;
  }
  said.output = *states.front().x;
  said.table = std::move(table);
  return said;
}

struct Count {
  int64_t said[2][3] = {};  // [truth][yes, no, unknown]
  int64_t planted(bool truth) const { return said[truth][0] + said[truth][1] + said[truth][2]; }
  int64_t wrong() const { return said[0][0] + said[1][1]; }
  int64_t unknown() const { return said[0][2] + said[1][2]; }
};

/// "sink" of "sink L0H3", "one direction" of "one direction 0".
inline std::string rule_of(const std::string& subject) { return subject.substr(0, subject.rfind(' ')); }

/// What was said where something else, or nothing, is true.
struct Slip {
  std::string subject;
  bool truth;
  Claim::Answer answer;
  bool wrong() const { return answer == (truth ? Claim::Answer::no : Claim::Answer::yes); }
};

inline std::string_view to_string(Claim::Answer a) {
  return a == Claim::Answer::yes ? "yes" : a == Claim::Answer::no ? "no" : "not known";
}

class Counts {
 public:
  /// Counts the network; names what was said wrongly and what was not known.
  std::vector<Slip> add(const Planted& p, const Said& said) {
    std::vector<Slip> slips;
    for (const auto& [subject, truth] : p.truth) {
      const auto found = said.answers.find(subject);
      const Claim::Answer answer = found == said.answers.end() ? Claim::Answer::unknown : found->second;
      ++by_rule_[rule_of(subject)].said[truth][static_cast<int>(answer)];
      if (answer != (truth ? Claim::Answer::yes : Claim::Answer::no))
        slips.push_back({subject, truth, answer});
    }
    return slips;
  }
  const std::map<std::string, Count>& by_rule() const { return by_rule_; }
  void add(const std::string& rule, const Count& more) {
    for (int truth = 0; truth < 2; ++truth)
      for (int answer = 0; answer < 3; ++answer)
        by_rule_[rule].said[truth][answer] += more.said[truth][answer];
  }
  std::string table() const {
    std::string text =
        "| statement | planted yes | yes | no | not known | planted no | yes | no | not known | false | not "
        "known |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const auto& [rule, c] : by_rule_) {
      const double n = static_cast<double>(c.planted(true) + c.planted(false));
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} % | {:.1f} % |\n", rule,
                          c.planted(true), c.said[1][0], c.said[1][1], c.said[1][2], c.planted(false),
                          c.said[0][0], c.said[0][1], c.said[0][2], 100 * static_cast<double>(c.wrong()) / n,
                          100 * static_cast<double>(c.unknown()) / n);
    }
    return text;
  }

 private:
  std::map<std::string, Count> by_rule_;
};

/// Network number i of the bank with this seed.
inline Planted network(uint64_t seed, uint64_t i, int64_t samples, int64_t length) {
  Draw draw(seed, i, i / families().size() + i % families().size());
  return families()[i % families().size()](draw, samples, length);
}

}  // namespace rankscope::bank
