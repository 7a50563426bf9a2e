#include "text/support.h"

namespace rankscope::test {
namespace {

Json wordpiece(Json vocab) { return {{"type", "WordPiece"}, {"vocab", vocab}, {"unk_token", "[UNK]"}}; }
Json bpe(Json vocab, Json merges) { return {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}; }
Json unigram(const std::vector<std::pair<std::string, Json>>& vocab, const Json& unknown) {
  Json list = Json::array();
  for (const auto& [token, score] : vocab) list.push_back(Json::array({token, score}));
  return {{"type", "Unigram"}, {"vocab", list}, {"unk_id", unknown}};
}

const Json kAb{{"a", 0}, {"b", 1}, {"ab", 2}, {"c", 3}, {"abc", 4}, {"bc", 5}, {"<unk>", 6}};

TEST(WordPiece, TakesTheLongestTokenFirst) {
  const Json model = wordpiece({{"[UNK]", 0}, {"un", 1}, {"##aff", 2}, {"##able", 3}, {"u", 4}, {"##a", 5}});
  EXPECT_EQ(model_ids(model, "unaffable"), (Ids{1, 2, 3}));
  EXPECT_EQ(model_ids(model, "unaffablex"), (Ids{0})) << "one unknown part makes the word unknown";
}

TEST(WordPiece, WordsOverTheLimitAreUnknown) {
  const Json model = wordpiece({{"[UNK]", 0}, {"é", 1}, {"##é", 2}});
  std::string word;
  for (int i = 0; i < 100; ++i) word += "é";
  EXPECT_EQ(model_ids(model, word).size(), 100u) << "characters count, not bytes";
  EXPECT_EQ(model_ids(model, word + "é"), (Ids{0}));
}

TEST(Bpe, MergesByRankAndThenFromTheLeft) {
  EXPECT_EQ(model_ids(bpe(kAb, {"a b", "ab c"}), "abc"), (Ids{4}));
  EXPECT_EQ(model_ids(bpe(kAb, {"b c", "a b"}), "abc"), (Ids{0, 5}));
  const Json as{{"a", 0}, {"aa", 1}};
  EXPECT_EQ(model_ids(bpe(as, {"a a"}), "aaaaa"), (Ids{1, 1, 0}));
}

TEST(Bpe, TakesMergesAsLists) {
  const Json vocab{{"a", 0}, {" ", 1}, {"a ", 2}};
  EXPECT_EQ(model_ids(bpe(vocab, Json::array({Json::array({"a", " "})})), "a "), (Ids{2}));
}

TEST(Bpe, WithoutAnUnknownTokenLosesWhatItDoesNotKnow) {
  EXPECT_EQ(model_ids(bpe(kAb, Json::array()), "axb"), (Ids{0, 1}));
}

TEST(Bpe, FusesUnknownsWhenTold) {
  Json model = bpe(kAb, Json::array());
  model["unk_token"] = "<unk>";
  EXPECT_EQ(model_ids(model, "xxa"), (Ids{6, 6, 0}));
  model["fuse_unk"] = true;
  EXPECT_EQ(model_ids(model, "xxaxx"), (Ids{6, 0, 6}));
}

TEST(Bpe, FallsBackToBytesThatTheVocabularyHas) {
  Json model = bpe({{"<0xC3>", 0}, {"<0xA9>", 1}, {"<unk>", 2}}, Json::array());
  model["byte_fallback"] = true;
  model["unk_token"] = "<unk>";
  EXPECT_EQ(model_ids(model, "é"), (Ids{0, 1}));
  EXPECT_EQ(model_ids(model, "è"), (Ids{2})) << "all of its bytes or none";
}

TEST(Bpe, IgnoresMergesForWholeWordsWhenTold) {
  Json model = bpe(kAb, Json::array());
  EXPECT_EQ(model_ids(model, "abc"), (Ids{0, 1, 3}));
  model["ignore_merges"] = true;
  EXPECT_EQ(model_ids(model, "abc"), (Ids{4}));
}

TEST(Bpe, SpellsPrefixesAndSuffixes) {
  Json model = bpe({{"a", 0}, {"##b", 1}, {"ab", 2}, {"##b</w>", 3}, {"ab</w>", 4}}, {"a ##b", "a ##b</w>"});
  model["continuing_subword_prefix"] = "##";
  EXPECT_EQ(model_ids(model, "ab"), (Ids{2}));
  model["end_of_word_suffix"] = "</w>";
  EXPECT_EQ(model_ids(model, "ab"), (Ids{4}));
}

TEST(Bpe, MergesAMegabyteInSeconds) {
  Json vocab{{"a", 0}}, merges = Json::array();
  std::string token = "a";
  for (int i = 1; i < 10; ++i) {
    merges.push_back(token + " " + token);
    token += token;
    vocab[token] = i;
  }
  EXPECT_EQ(model_ids(bpe(vocab, merges), std::string(1 << 20, 'a')).size(), (1u << 20) / 512);
}

TEST(Unigram, TakesTheCutOfTheLargestScore) {
  const std::vector<std::pair<std::string, Json>> vocab{
      {"<unk>", 0.0}, {"a", -1.0}, {"b", -2.0}, {"ab", -2.5}, {"ba", -4.5}};
  EXPECT_EQ(model_ids(unigram(vocab, 0), "ab"), (Ids{3}));
  EXPECT_EQ(model_ids(unigram(vocab, 0), "aba"), (Ids{3, 1}));
  EXPECT_EQ(model_ids(unigram(vocab, 0), "ba"), (Ids{2, 1}));
}

TEST(Unigram, JoinsNeighbouringUnknowns) {
  EXPECT_EQ(model_ids(unigram({{"<unk>", 0.0}, {"a", -1.0}}, 0), "xyaz"), (Ids{0, 1, 0}));
}

TEST(Unigram, FallsBackToBytes) {
  Json model = unigram({{"<unk>", 0.0}, {"<0x78>", -9.0}, {"<0x79>", -9.0}}, 0);
  model["byte_fallback"] = true;
  EXPECT_EQ(model_ids(model, "xy"), (Ids{1, 2}));
  EXPECT_EQ(model_ids(model, "xz"), (Ids{0})) << "all of its bytes or none";
}

TEST(WordLevel, LooksWholeWordsUp) {
  EXPECT_EQ(model_ids(word_level({"hey"}), "hey"), (Ids{1}));
  EXPECT_EQ(model_ids(word_level({"hey"}), "heyy"), (Ids{0}));
}

TEST(Models, WithoutATypeAreKnownByTheirMembers) {
  EXPECT_EQ(text::read_model({{"vocab", kAb}, {"merges", {"a b"}}}, "")->kind(), "BPE");
  EXPECT_EQ(text::read_model({{"vocab", Json::array({Json::array({"a", -1.0})})}, {"unk_id", 0}}, "")->kind(),
            "Unigram");
}

TEST(ModelErrors, NameWhatIsWrong) {
  const auto error = [](const Json& model, const char* word = "x") {
    const std::string text = error_of([&] { model_ids(model, word); });
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(error({{"type", "Morse"}}), "error: the model \"Morse\" is not supported");
  EXPECT_EQ(error(Json::object()), "error: the key \"type\" is missing");
  EXPECT_EQ(error(wordpiece({{"a", 0}})),
            "error: the word \"x\" is unknown, and the token for unknown words, \"[UNK]\", is not in the "
            "vocabulary");
  EXPECT_EQ(error(wordpiece({{"a", -1}})),
            "error: the id of the token \"a\" should be a whole number from 0 to 2147483647");
  EXPECT_EQ(error(wordpiece({{"a", 4294967296}})),
            "error: the id of the token \"a\" should be a whole number from 0 to 2147483647");
  EXPECT_EQ(error(wordpiece({{"a", 1.5}})),
            "error: the id of the token \"a\" should be a whole number from 0 to 2147483647");
  EXPECT_EQ(error(wordpiece({{"a", 3}, {"b", 3}})), "error: the id 3 belongs to two tokens, \"a\" and \"b\"");
  EXPECT_EQ(error(wordpiece({"a", "b"})), "error: \"vocab\" should be an object of tokens and ids");
  EXPECT_EQ(error(bpe(kAb, {"a b c"})), "error: merge 0 should be two tokens, as \"a b\" or [\"a\", \"b\"]");
  EXPECT_EQ(error(bpe(kAb, {"a b", 7})), "error: merge 1 should be two tokens, as \"a b\" or [\"a\", \"b\"]");
  EXPECT_EQ(error(bpe(kAb, {"a x"})), "error: merge 0 needs the token \"x\", which is not in the vocabulary");
  EXPECT_EQ(error(bpe(kAb, {"c a"})),
            "error: merge 0 needs the token \"ca\", which is not in the vocabulary");
  EXPECT_EQ(error(unigram({{"a", 0.0}}, 7)),
            "error: \"unk_id\" should be a whole number from 0 to 0, but is 7");
  EXPECT_EQ(error(unigram({{"a", "b"}}, 0)), "error: entry 0 of \"vocab\" should be a token and its score");
  EXPECT_EQ(error(unigram({}, 0)), "error: \"vocab\" is empty");
  EXPECT_EQ(error(unigram({{"a", 0.0}}, nullptr)),
            "error: a character is unknown, and the Unigram model has no \"unk_id\"");
  Json dropout = bpe(kAb, Json::array());
  dropout["dropout"] = 0.1;
  EXPECT_EQ(error(dropout), "error: the BPE model has a dropout: its ids would be random");
  EXPECT_EQ(error(wordpiece({{std::string(5000, 'a'), 0}})),
            "error: the token \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" has 5000 bytes, more than the "
            "4096 allowed");
}

}  // namespace
}  // namespace rankscope::test
