// What every rule of the verdict promises: metadata that is whole, sentences under its own topic, "not known"
// where nothing was measured, and a page that says the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope {
namespace {

ModelSpec small_model() {
  ModelSpec spec;
  BlockSpec block = classic_block(NormPlace::post, {NormKind::layer}, {});
  block.attention().heads = 2;
  block.attention().d_qk = block.attention().d_v = 16;
  spec.blocks.assign(2, block);
  return spec;
}

std::vector<Finding> alone(const Rule& rule, const ResultTable& table, int64_t shortest) {
  const ModelSpec spec = small_model();
  const Thresholds limits;
  const Measured measured{shortest};
  verdict::Case c{verdict::Evidence(table), spec, limits, measured, verdict::Path(spec), {}};
  rule.judge(c);
  return c.findings;
}

std::string page() {
  const char* root = std::getenv("RANKSCOPE_SOURCE");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/docs/VERDICT.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(RuleContract, EveryRuleSaysWhereItStandsAndWhatItAnswers) {
  std::set<int> orders;
  for (const Rule* rule : rules()) {
    EXPECT_TRUE(orders.insert(rule->order).second) << rule->question;
    EXPECT_FALSE(rule->topic.empty()) << rule->question;
    EXPECT_TRUE(rule->question.ends_with('?')) << rule->question;
    EXPECT_NE(rule->judge, nullptr) << rule->question;
  }
}

TEST(RuleContract, AThresholdHasOneOwnerAUnitAMeaningAndAPositiveDefault) {
  std::set<std::string_view> names;
  for (const ThresholdInfo& t : threshold_infos()) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    EXPECT_TRUE(std::isfinite(t.value) && t.value > 0) << t.name;
    EXPECT_FALSE(t.unit.empty() || t.meaning.empty()) << t.name;
    EXPECT_EQ(Thresholds()[t.name], t.value);
  }
  EXPECT_FALSE(names.empty());
}

TEST(RuleContract, AThresholdNobodyOwnsIsAnErrorThatSuggestsOne) {
  Thresholds limits;
  try {
    limits.set("colapse", 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "there is no threshold \"colapse\"");
  }
  limits.set("collapse", 0.25);
  EXPECT_EQ(limits["collapse"], 0.25);
}

TEST(RuleContract, WithoutEvidenceARuleSaysNothingOrThatItIsNotKnown) {
  for (const Rule* rule : rules())
    for (const Finding& f : alone(*rule, {}, 100)) {
      EXPECT_FALSE(f.known) << rule->question << ": " << f.sentence;
      EXPECT_EQ(f.topic, rule->topic) << f.sentence;
    }
}

TEST(RuleContract, ARuleSpeaksUnderItsOwnTopic) {
  ResultTable table;
  for (const char* variant : {"full", "-skip", "-head-mean:L0H0", "-head-bare:L0H0", "-heads-mean:L0H0+L0H1",
                              "rank:qk=8", "replace:softmax=linear@L0"})
    for (int layer = 0; layer < 2; ++layer)
      for (int head = -1; head < 2; ++head)
        for (const char* metric :
             {"residual_fro_rel_trimmed", "sink_mass", "sink_uniform", "head_output_rel", "output_kl",
              "qk_effective_rank", "ov_effective_rank", "massive_ratio", "head_zero_kl"})
          table.rows.push_back({variant, fmt::format("blocks.{}.hook_resid_post", layer), layer, head, metric,
                                0.001, 0.0001, 8, layer + 1, head < 0 ? "content" : "all"});
  for (const Rule* rule : rules()) {
    const std::vector<Finding> said = alone(*rule, table, 1);
    EXPECT_FALSE(said.empty()) << rule->question;
    for (const Finding& f : said) EXPECT_EQ(f.topic, rule->topic) << f.sentence;
  }
}

TEST(RuleContract, ThePageListsEveryQuestionAndEveryThreshold) {
  const std::string text = page();
  for (const Rule* rule : rules_in_order())
    EXPECT_NE(text.find(fmt::format("| {} | {} |", rule->topic, rule->question)), std::string::npos)
        << rule->question;
  for (const ThresholdInfo& t : threshold_infos()) {
    const std::string row = fmt::format("| `{}` | {} | {} | {} |", t.name, t.value, t.unit, t.meaning);
    EXPECT_NE(text.find(row), std::string::npos) << "docs/VERDICT.md lacks\n" << row;
  }
}

}  // namespace
}  // namespace rankscope
