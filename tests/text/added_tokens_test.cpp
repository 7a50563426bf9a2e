#include "text/support.h"

namespace rankscope::test {
namespace {

Json added(const char* content, Json flags = Json::object()) {
  Json out{{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
           {"rstrip", false}, {"normalized", false}, {"special", true}};
  out.update(flags);
  return out;
}

// Characters are the model's tokens, so that the ids show what is left around the added ones: 100 and up.
std::unique_ptr<Tokenizer> with(Json tokens, Json normalizer = nullptr) {
  Json vocab = Json::object();
  for (int i = 0; i < 100; ++i)
    vocab[i < 95 ? std::string(1, static_cast<char>(' ' + i)) : "more" + std::to_string(i)] = i;
  return tokenizer({{"added_tokens", tokens},
                    {"normalizer", normalizer},
                    {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}});
}

std::string shown(const Tokenizer& tokenizer, const std::string& text) {
  std::string out;
  for (const int64_t id : tokenizer.encode(text).ids)
    out += id >= 100 ? "{" + tokenizer.token(id) + "}" : tokenizer.token(id);
  return out;
}

TEST(AddedTokens, AreFoundAnywhereInTheText) {
  EXPECT_EQ(shown(*with({added("<s>")}), "<s>a<s><s>b"), "{<s>}a{<s>}{<s>}b");
}

TEST(AddedTokens, AreTheLeftmostAndThenTheLongest) {
  EXPECT_EQ(shown(*with({added("ab"), added("abc"), added("bcd")}), "abcd"), "{abc}d");
  EXPECT_EQ(shown(*with({added("ab"), added("bcd")}), "abcd"), "{ab}cd");
}

TEST(AddedTokens, TakeTheWhiteSpaceTheyAreTold) {
  EXPECT_EQ(shown(*with({added("<m>", {{"lstrip", true}})}), "a  <m>  b"), "a{<m>}  b");
  EXPECT_EQ(shown(*with({added("<m>", {{"rstrip", true}})}), "a  <m>  b"), "a  {<m>}b");
  EXPECT_EQ(shown(*with({added("<m>", {{"lstrip", true}, {"rstrip", true}})}), "<m> \n <m>"), "{<m>}{<m>}");
}

TEST(AddedTokens, ThatAreWhiteSpaceCountAgainWhenTakenByTheOneBefore) {
  EXPECT_EQ(with({added("\n", {{"rstrip", true}})})->encode("\n\n\n").ids, (Ids{100, 100, 100}));
  EXPECT_EQ(with({added("\n", {{"lstrip", true}, {"rstrip", true}})})->encode("\n\n\n").ids, (Ids{100}));
}

TEST(AddedTokens, ThatAreSingleWordsStandAlone) {
  const auto t = with({added("cat", {{"single_word", true}})});
  EXPECT_EQ(shown(*t, "cat cats _cat (cat)"), "{cat} cats _cat ({cat})");
}

TEST(AddedTokens, ThatAreNormalizedMatchTheNormalizedText) {
  const Json lower{{"type", "Lowercase"}};
  EXPECT_EQ(shown(*with({added("Cat", {{"normalized", true}})}, lower), "CAT cat"), "{Cat} {Cat}");
  EXPECT_EQ(shown(*with({added("Cat")}, lower), "Cat CAT"), "{Cat} cat");
}

TEST(AddedTokens, GetTheIdsTheLibraryGivesThem) {
  const auto t = with({added("<s>", {{"id", 500}}), added("a", {{"id", 7}}), added("</s>", {{"id", 3}})});
  EXPECT_EQ(t->id("<s>"), 100);
  EXPECT_EQ(t->id("a"), 'a' - ' ') << "the model has it already";
  EXPECT_EQ(t->id("</s>"), 101);
  EXPECT_EQ(t->vocabulary_size(), 102);
}

TEST(AddedTokens, ListedTwiceTakeTheLaterFlags) {
  const auto t = with({added("<m>"), added("<m>", {{"lstrip", true}, {"special", false}})});
  EXPECT_EQ(shown(*t, "a <m>"), "a{<m>}");
  EXPECT_TRUE(t->is_special(100));
  EXPECT_EQ(t->vocabulary_size(), 101);
}

TEST(AddedTokens, AreSpecialOnlyIfTheySaySo) {
  const auto t = with({added("<s>"), added("cat", {{"special", false}})});
  EXPECT_EQ(t->encode("a<s>cat").special, (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(t->is_special(100));
  EXPECT_FALSE(t->is_special(101));
  EXPECT_FALSE(t->is_special(12345));
  EXPECT_EQ(t->token(12345), "");
  EXPECT_EQ(t->id("no such token"), std::nullopt);
}

TEST(AddedTokens, EndTheFirstSectionOfMetaspace) {
  Json json{{"added_tokens", {added("<s>")}},
            {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}}},
            {"model", word_level({"_a", "a"})}};
  EXPECT_EQ(tokenizer(json)->encode("a<s>a").ids, (Ids{1, 3, 2}));
  EXPECT_EQ(tokenizer(json)->encode("<s>a").ids, (Ids{3, 2}));
  json["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_EQ(tokenizer(json)->encode("a<s>a").ids, (Ids{1, 3, 1}));
}

TEST(AddedTokens, DoNotBringTheStartBackThatANormalizerTook) {
  const Json json{
      {"normalizer", {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}},
      {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}}},
      {"model", word_level({"_a", "a"})}};
  EXPECT_EQ(tokenizer(json)->encode("a").ids, (Ids{1}));
  EXPECT_EQ(tokenizer(json)->encode(" a").ids, (Ids{2})) << "as the library does it";
}

TEST(AddedTokenErrors, NameWhatIsWrong) {
  EXPECT_EQ(
      error_of([] {
        with({added("a", {{"id", -4}})});
      }),
      "error: \"id\" should be a whole number from 0 to 2147483647, but is -4\n  in   tokenizer.json\n");
  EXPECT_EQ(error_of([] {
              with({added("a", {{"lstrip", "yes"}})});
            }),
            "error: \"lstrip\" should be true or false\n  in   tokenizer.json\n");
  EXPECT_EQ(error_of([] { with("a"); }), "error: \"added_tokens\" should be a list\n  in   tokenizer.json\n");
  EXPECT_EQ(error_of([] { with({7}); }),
            "error: expected a JSON object, but got number\n  in   tokenizer.json\n");
}

}  // namespace
}  // namespace rankscope::test
