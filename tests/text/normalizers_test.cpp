#include "text/support.h"

namespace rankscope::test {
namespace {

Json bert(bool clean, bool chinese, Json accents, bool lower) {
  return {{"type", "BertNormalizer"},
          {"clean_text", clean},
          {"handle_chinese_chars", chinese},
          {"strip_accents", accents},
          {"lowercase", lower}};
}
Json replace(const Json& pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

TEST(BertNormalizer, CleansSpacesAndControlCharacters) {
  EXPECT_EQ(normalized(bert(true, false, false, false), "a\tb\u00A0c\u200Bd\x01\u0000e\uFFFD"), "a b cd");
  EXPECT_EQ(normalized(bert(true, false, false, false), std::string("a\0b", 3)), "ab");
}

TEST(BertNormalizer, KeepsWhatIsNotAssigned) {
  EXPECT_EQ(normalized(bert(true, false, false, false), "a\u0378b"), "a\u0378b");
  EXPECT_EQ(normalized(bert(true, false, false, false), "a\uE000b"), "ab") << "private use goes";
}

TEST(BertNormalizer, SetsIdeographsApart) {
  EXPECT_EQ(normalized(bert(false, true, false, false), "a中文b"), "a 中  文 b");
  EXPECT_EQ(normalized(bert(false, true, false, false), "かな"), "かな");
}

TEST(BertNormalizer, StripsAccentsWhenItLowersUnlessTold) {
  EXPECT_EQ(normalized(bert(false, false, nullptr, true), "ÉÑ"), "en");
  EXPECT_EQ(normalized(bert(false, false, nullptr, false), "ÉÑ"), "ÉÑ");
  EXPECT_EQ(normalized(bert(false, false, false, true), "ÉÑ"), "éñ");
}

TEST(Lowercase, KnowsNoFinalSigma) {
  EXPECT_EQ(normalized({{"type", "Lowercase"}}, "ΣΟΦΟΣ"), "σοφοσ");
  EXPECT_EQ(normalized({{"type", "Lowercase"}}, "İ"), "i\u0307");
}

TEST(UnicodeForms, ComposeAndDecompose) {
  EXPECT_EQ(normalized({{"type", "NFC"}}, "e\u0301"), "é");
  EXPECT_EQ(normalized({{"type", "NFD"}}, "é"), "e\u0301");
  EXPECT_EQ(normalized({{"type", "NFKC"}}, "ﬁ①"), "fi1");
  EXPECT_EQ(normalized({{"type", "NFKD"}}, "ﬁé"), "fie\u0301");
}

TEST(UnicodeForms, LeaveCharactersYoungerThanTheLibrarysTables) {
  EXPECT_EQ(normalized({{"type", "NFKC"}}, "\u32FF"), "\u32FF") << "the era name of 2019";
  EXPECT_EQ(normalized({{"type", "NFKC"}}, "\u337B"), "平成");
}

TEST(StripAccents, DropsMarksAndDecomposesNothing) {
  EXPECT_EQ(normalized({{"type", "StripAccents"}}, "e\u0301é"), "eé");
}

TEST(Strip, CutsWhiteSpaceOnTheSidesItIsTold) {
  const auto strip = [](bool left, bool right) {
    return Json{{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}};
  };
  EXPECT_EQ(normalized(strip(true, true), " \u3000a b\n"), "a b");
  EXPECT_EQ(normalized(strip(false, true), " a "), " a");
  EXPECT_EQ(normalized(strip(true, false), " a "), "a ");
  EXPECT_EQ(normalized(strip(true, true), " \t "), "");
}

TEST(Prepend, LeavesTheEmptyTextAlone) {
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "▁"}}, "a"), "▁a");
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "▁"}}, ""), "");
}

TEST(Replace, TakesStringsAndExpressions) {
  EXPECT_EQ(normalized(replace({{"String", " "}}, "▁"), "a b  c"), "a▁b▁▁c");
  EXPECT_EQ(normalized(replace({{"String", "a.c"}}, "x"), "abc a.c"), "abc x");
  EXPECT_EQ(normalized(replace(regex(" {2,}"), " "), "a   b c"), "a b c");
  EXPECT_EQ(normalized(replace(regex("(b)"), "$1"), "abc"), "a$1c") << "no references to groups";
}

TEST(Replace, OfTheEmptyStringMatchesEverywhere) {
  EXPECT_EQ(normalized(replace({{"String", ""}}, "-"), "ab"), "-a-b-");
}

TEST(Nmt, TurnsOddSpacesIntoPlainOnes) {
  EXPECT_EQ(normalized({{"type", "Nmt"}}, "a\u200Bb\x01\tc\u2581"), "a b c ");
}

TEST(ByteLevelNormalizer, SpellsBytes) { EXPECT_EQ(normalized({{"type", "ByteLevel"}}, " é\n"), "ĠÃ©Ċ"); }

TEST(NormalizerSequence, AppliesItsMembersInOrder) {
  const Json lower{{"type", "Lowercase"}};
  EXPECT_EQ(
      normalized({{"type", "Sequence"}, {"normalizers", {replace({{"String", "A"}}, "B"), lower}}}, "A"),
      "b");
  EXPECT_EQ(normalized({{"type", "Sequence"}, {"normalizers", Json::array()}}, "A"), "A");
}

TEST(NormalizerErrors, NameWhatIsNotKnown) {
  EXPECT_EQ(error_of([] {
              normalized({{"type", "Rot13"}}, "a");
            }),
            "error: the normalizer \"Rot13\" is not supported\n"
            "  in   tokenizer.json\n"
            "  try  the known ones are BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
            "Precompiled, "
            "Prepend, Replace, Sequence, Strip, StripAccents\n");
}

TEST(NormalizerErrors, StopTextsThatGrowWithoutEnd) {
  EXPECT_EQ(
      error_of([&] {
        normalized(replace({{"String", "a"}}, std::string(1 << 20, 'a').c_str()), std::string(129, 'a'));
      }),
      "error: the normalizer makes the text longer than 128 MiB\n"
      "  in   tokenizer.json\n"
      "  try  check the replacements of its normalizer, or pass shorter texts\n");
}

// Long before that: every match of a text of 128 MiB takes 24 bytes more.
TEST(NormalizerErrors, StopMembersThatMakeATextGrowTogether) {
  const auto sixteen_of = [](int steps, const Json& inner) {
    Json members = Json::array();
    for (int i = 0; i < steps; ++i) members.push_back(replace({{"String", "a"}}, "aaaaaaaaaaaaaaaa"));
    if (!inner.is_null()) members.push_back(inner);
    return Json{{"type", "Sequence"}, {"normalizers", members}};
  };
  const std::string text(1024, 'a'),
      why = "error: the normalizer makes the text more than 64 times as long\n";
  EXPECT_EQ(normalized(sixteen_of(1, nullptr), text).size(), 16 * text.size());
  EXPECT_EQ(error_of([&] { normalized(sixteen_of(2, nullptr), text); }).find(why), 0u);
  EXPECT_EQ(error_of([&] { normalized(sixteen_of(1, sixteen_of(1, nullptr)), text); }).find(why), 0u);
  const Json outer{{"type", "Sequence"}, {"normalizers", {sixteen_of(1, nullptr), sixteen_of(1, nullptr)}}};
  EXPECT_EQ(error_of([&] { normalized(outer, text); }).find(why), 0u);
}

TEST(NormalizerErrors, RefuseMoreMembersThanAnyoneNeeds) {
  Json inner{{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 200; ++i) inner["normalizers"].push_back({{"type", "NFC"}});
  const Json outer{{"type", "Sequence"}, {"normalizers", {inner, inner}}};
  EXPECT_EQ(error_of([&] { normalized(outer, "a"); }),
            "error: \"normalizers\" has 402 members, more than the 256 allowed\n  in   tokenizer.json\n");
}

}  // namespace
}  // namespace rankscope::test
