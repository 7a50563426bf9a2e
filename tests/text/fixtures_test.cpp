// Every id that the `tokenizers` library gave for two thousand strings.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "support/source_tree.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

struct Case {
  const char* folder;
  const char* ids;  // the folder whose ids they share
};

class Fixture : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto root = test::fixtures() / "tokenizers";
    strings = read_json(root / "strings.json").get<std::vector<std::string>>();
    expected = read_json(root / GetParam().ids / "ids.json");
    tokenizer = load_tokenizer(root / GetParam().folder);
  }

  // Counts all differences and shows the first: two thousand failures say no more than one.
  template <typename Encode>
  void compare(const char* key, Encode encode) {
    const Json& lists = expected.at(key);
    ASSERT_GE(lists.size(), 200u);
    size_t wrong = 0;
    for (size_t i = 0; i < lists.size(); ++i) {
      const auto want = lists[i].get<std::vector<int64_t>>();
      const std::vector<int64_t> got = encode(i);
      if (got != want && wrong++ == 0)
        ADD_FAILURE() << key << " " << i << ": \"" << printable(strings[i]) << "\"\n  want "
                      << Json(want).dump() << "\n  got  " << Json(got).dump();
    }
    EXPECT_EQ(wrong, 0u) << "of " << lists.size();
  }

  std::vector<std::string> strings;
  Json expected;
  std::unique_ptr<Tokenizer> tokenizer;
};

TEST_P(Fixture, SingleTextsHaveTheLibrarysIds) {
  compare("single", [&](size_t i) { return tokenizer->encode(strings[i]).ids; });
}

TEST_P(Fixture, PairsHaveTheLibrarysIds) {
  compare("pairs", [&](size_t i) { return tokenizer->encode_pair(strings[i], strings[i + 1]).ids; });
}

TEST_P(Fixture, PairsHaveTheLibrarysTypes) {
  compare("types", [&](size_t i) { return tokenizer->encode_pair(strings[i], strings[i + 1]).types; });
}

TEST_P(Fixture, TextsWithoutSpecialTokensHaveTheLibrarysIds) {
  compare("no_special", [&](size_t i) { return tokenizer->encode(strings[i], false).ids; });
}

TEST_P(Fixture, EveryIdIsAToken) {
  for (const std::string& text : strings) {
    const Encoding encoding = tokenizer->encode(text);
    ASSERT_EQ(encoding.types.size(), encoding.ids.size());
    ASSERT_EQ(encoding.special.size(), encoding.ids.size());
    for (const int64_t id : encoding.ids) {
      ASSERT_LT(id, tokenizer->vocabulary_size());
      ASSERT_EQ(tokenizer->id(tokenizer->token(id)), id);
    }
  }
}

TEST_P(Fixture, SpecialTokensAreWhatTheFrameAdds) {
  for (size_t i = 0; i < 300; ++i) {
    const Encoding framed = tokenizer->encode(strings[i]), bare = tokenizer->encode(strings[i], false);
    const auto count = [](const Encoding& e) { return std::count(e.special.begin(), e.special.end(), true); };
    EXPECT_EQ(count(framed) - count(bare), static_cast<std::ptrdiff_t>(framed.ids.size() - bare.ids.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Library, Fixture,
                         testing::Values(Case{"bert-uncased", "bert-uncased"},
                                         Case{"bert-cased", "bert-cased"}, Case{"gpt2", "gpt2"},
                                         Case{"roberta", "roberta"}, Case{"llama2", "llama2"},
                                         Case{"mistral-metaspace", "mistral-metaspace"},
                                         Case{"llama3", "llama3"}, Case{"qwen2", "qwen2"},
                                         Case{"albert", "albert"}, Case{"xlnet", "xlnet"},
                                         Case{"vocab-txt", "bert-uncased"}, Case{"vocab-merges", "gpt2"}),
                         [](const auto& tested) {
                           std::string name = tested.param.folder;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rankscope
