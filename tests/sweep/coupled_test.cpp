// Keys that vary together, and several of them on one command line.
#include "studies/coupled.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/test_support.h"
#include "studies/study.h"
#include "sweep/fake_runner.h"

namespace rankscope::test {
namespace {

constexpr const char* kStudy = R"(title = "Two tables"
runner = "fake"
[fixed]
d = 16
[grid]
on = [
  { norm = "none", rank = 1, heads = 16 },
  { norm = "none", rank = 8, heads = 2 },
  { norm = "unit", rank = 8, heads = 4 },
]
by = [{ steps = 3, bias = true }, { steps = 5, bias = false }]
[protocol]
lr = 0.1
seeds = 2
)";

Study two_tables() { return parse_study(kStudy, "two", "two.toml"); }

std::vector<Axis> given(const std::vector<std::string>& texts) {
  std::vector<Axis> out;
  for (const std::string& text : texts) out.push_back(parse_override(text, fake_runner().keys));
  return out;
}

std::vector<Trial> trials_of(const std::vector<std::string>& texts,
                             std::vector<std::string>* notes = nullptr) {
  return trials(two_tables(), fake_runner(), given(texts), notes);
}

std::set<std::string> written(const std::vector<std::string>& texts) {
  std::set<std::string> out;
  for (const Trial& t : trials_of(texts))
    out.insert(fmt::format("{} r{} h{} t{} {}", text(t.config, "norm"), integer(t.config, "rank"),
                           integer(t.config, "heads"), integer(t.config, "steps"),
                           flag(t.config, "bias") ? "bias" : "plain"));
  return out;
}

using Words = std::set<std::string>;

TEST(Coupled, WhatIsGivenHoldsInEveryTrialInWhateverOrderItIsGiven) {
  const std::vector<std::vector<std::string>> values{{"norm=none", "norm=unit", "norm=none,unit"},
                                                     {"rank=8", "rank=4", "rank=1,2"},
                                                     {"heads=2", "heads=7", "heads=16,3"},
                                                     {"steps=5", "steps=9", "steps=3,9"},
                                                     {"bias=true", "bias=true,false"},
                                                     {"lr=0.5", "lr=0.1,0.2"}};
  const size_t keys = values.size();
  size_t tried = 0;
  for (size_t which = 0; which < 64; ++which)           // which keys are given
    for (size_t variant = 0; variant < 3; ++variant) {  // and which of their values
      std::vector<std::string> texts;
      for (size_t k = 0; k < keys; ++k)
        if ((which >> k & 1) != 0) texts.push_back(values[k][(variant + k * which) % values[k].size()]);
      if (texts.empty() || texts.size() > 4) continue;
      std::sort(texts.begin(), texts.end());
      Words first;
      do {
        Words ids;
        std::map<std::string, Words> ran;
        for (const Trial& t : trials_of(texts)) {
          ids.insert(t.id);
          for (const Axis& axis : given(texts))
            ran[axis.names[0]].insert(to_text(t.config.at(axis.names[0])));
        }
        for (const Axis& axis : given(texts)) {
          Words wanted;
          for (const auto& value : axis.points) wanted.insert(to_text(value[0]));
          EXPECT_EQ(ran[axis.names[0]], wanted) << fmt::format("{}", fmt::join(texts, " "));
        }
        if (first.empty()) first = ids;
        EXPECT_EQ(ids, first) << fmt::format("{}", fmt::join(texts, " "));
        ++tried;
      } while (std::next_permutation(texts.begin(), texts.end()));
    }
  EXPECT_GT(tried, 1000u);
}

TEST(Coupled, EntriesThatHaveAllGivenValuesRunAsTheyAre) {
  EXPECT_EQ(written({"rank=8", "norm=none", "steps=5"}), (Words{"none r8 h2 t5 plain"}));
  EXPECT_EQ(written({"heads=2,4", "norm=none,unit", "steps=3"}),
            (Words{"none r8 h2 t3 bias", "unit r8 h4 t3 bias"}));
}

TEST(Coupled, AValueThatNoEntryHasReplacesTheirsAndTheirOtherKeysStay) {
  EXPECT_EQ(written({"heads=8", "norm=none", "steps=3"}),
            (Words{"none r1 h8 t3 bias", "none r8 h8 t3 bias"}));
  EXPECT_EQ(written({"steps=9", "rank=1"}), (Words{"none r1 h16 t9 bias", "none r1 h16 t9 plain"}));
}

// The first key of an entry says what it is: heads=16 belongs to another norm.
TEST(Coupled, KeysAsTheStudyWritesThemFindTheEntry) {
  EXPECT_EQ(written({"heads=16", "norm=unit", "steps=3"}), (Words{"unit r8 h16 t3 bias"}));
}

TEST(Coupled, AValueIsNotLostWhereOthersOfItsKeyHaveAnEntry) {
  EXPECT_EQ(written({"norm=none,unit", "rank=1", "steps=3"}),
            (Words{"none r1 h16 t3 bias", "unit r1 h4 t3 bias"}));
}

TEST(Coupled, ACombinationThatIsNoEntryIsTold) {
  std::vector<std::string> notes;
  trials_of({"rank=8", "norm=none", "steps=5"}, &notes);
  EXPECT_EQ(notes, std::vector<std::string>{});
  trials_of({"heads=8", "norm=none,unit", "steps=9"}, &notes);
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "no entry of two has norm=none,unit with heads=8: the other settings of "
                       "norm=none,unit are kept",
                       "no entry of two has steps=9: its entries run with it and keep the rest"}));
}

TEST(Coupled, EntriesThatCannotHaveTheValueAreLeftOutWhereOthersCan) {
  std::vector<std::string> notes;
  const char* study = R"(runner = "fake"
[grid]
on = [{ rank = 1, d = 16 }, { rank = 3, d = 9 }]
)";
  const auto run = [&](const char* override_text) {
    return trials(parse_study(study, "two", "two.toml"), fake_runner(), given({override_text}), &notes);
  };
  EXPECT_EQ(run("d=8").size(), 1u);
  EXPECT_EQ(notes,
            (std::vector<std::string>{"no entry of two has d=8: its entries run with it and keep the rest",
                                      "left out: rank=3 d=8: the rank 3 does not divide the width 8"}));
  EXPECT_EQ(error_of([&] { run("rank=5"); }).message(),
            "rank=5 d=16: the rank 5 does not divide the width 16");
}

TEST(Coupled, AKeyGivenTwiceIsRefused) {
  EXPECT_EQ(error_of([] {
              trials_of({"rank=1", "norm=none", "rank=8"});
            }).render(),
            "error: \"rank\" is given twice: rank=1 and rank=8\n"
            "  try  give it once, with all of its values: rank=A,B\n");
}

}  // namespace
}  // namespace rankscope::test
