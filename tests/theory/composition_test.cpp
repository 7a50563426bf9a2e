// The sheet on hybrid linear-full attention, (d) 1 and 6.
#include "theory/composition.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

// Reads the prompt token by token, as somebody would who knows nothing of tables.
int64_t value_at(const std::vector<CompositionToken>& prompt, int64_t level, int64_t key) {
  int64_t found = -1;
  for (const CompositionToken& t : prompt)
    if (t.level == level && t.key == key) {
      EXPECT_EQ(found, -1) << "two tokens say what table " << level << " has at " << key;
      found = t.value;
    }
  EXPECT_NE(found, -1) << "no token says what table " << level << " has at " << key;
  return found;
}

TEST(Composition, TheAnswerIsWhatAReaderOfThePromptFinds) {
  for (int64_t L = 1; L <= 5; ++L) {
    const CompositionSize size{L, 3, 2};
    for (uint32_t i = 0; i < 2000; ++i) {
      const Composition c = draw_composition(size, 7, i);
      const auto prompt = prompt_of(c);
      int64_t at = value_at(prompt, 0, 0), span = 3;
      at = value_at(prompt, 1, at);
      for (int64_t l = 2; l <= L; ++l, span *= 2)
        at = value_at(prompt, l, c.told[static_cast<size_t>(l - 2)] * span + at);
      ASSERT_EQ(c.answer(), at) << L << " functions, instance " << i;
    }
  }
}

TEST(Composition, PromptsListTheFirstFunctionLast) {
  const Composition c = draw_composition({2, 6, 3}, 1, 0);
  const auto prompt = prompt_of(c);
  EXPECT_EQ(static_cast<int64_t>(prompt.size()), c.size.tokens());
  EXPECT_EQ(prompt.front().level, 2);
  EXPECT_EQ(prompt[18].level, 1);
  EXPECT_EQ(prompt[24].level, 0);
  EXPECT_EQ(prompt[25].level, 3);
  const int64_t tokens[] = {8, 26, 80, 242};
  for (int64_t L = 1; L <= 4; ++L) EXPECT_EQ((CompositionSize{L, 6, 3}.tokens()), tokens[L - 1]);
}

TEST(Composition, InstancesDiffer) {
  const CompositionSize size{3, 6, 3};
  EXPECT_NE(draw_composition(size, 1, 0).tables, draw_composition(size, 1, 1).tables);
  EXPECT_NE(draw_composition(size, 1, 0).tables, draw_composition(size, 2, 0).tables);
  EXPECT_EQ(draw_composition(size, 1, 5).tables, draw_composition(size, 1, 5).tables);
}

TEST(Composition, TheTheoremSpeaksFromNumbersOfTokensOnThatNobodyHas) {
  EXPECT_EQ(log2_tokens_hybrids_fail(10, 1), 640);
  EXPECT_EQ(log2_tokens_hybrids_fail(10, 2), 10240);
  EXPECT_EQ(log2_tokens_hybrids_fail(10, 3), 163840);
  EXPECT_EQ(log2_tokens_full_layers_fail(10, 1), 160);
}

}  // namespace
}  // namespace rankscope
