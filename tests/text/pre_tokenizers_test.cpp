#include "text/support.h"

namespace rankscope::test {
namespace {

Json metaspace(const char* scheme, bool cuts = true) {
  return {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", cuts}};
}
Json byte_level(bool prefix, bool words = true) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"use_regex", words}};
}

TEST(BertPreTokenizer, DropsWhiteSpaceAndIsolatesPunctuation) {
  EXPECT_EQ(parts({{"type", "BertPreTokenizer"}}, "Hey  man, $5…\n"),
            (Words{"Hey", "man", ",", "$", "5", "…"}));
  EXPECT_EQ(parts({{"type", "BertPreTokenizer"}}, "a€b"), (Words{"a€b"})) << "other currencies are symbols";
}

TEST(Whitespace, SeparatesWordsFromOtherSigns) {
  EXPECT_EQ(parts({{"type", "Whitespace"}}, "How's it_going?! e\u0301"),
            (Words{"How", "'", "s", "it_going", "?!", "e\u0301"}));
}

TEST(WhitespaceSplit, CutsAtWhiteSpaceOnly) {
  EXPECT_EQ(parts({{"type", "WhitespaceSplit"}}, " a,b\u3000\u0085c "), (Words{"a,b", "c"}));
}

TEST(Digits, StayTogetherUnlessTold) {
  EXPECT_EQ(parts({{"type", "Digits"}, {"individual_digits", false}}, "a12½b"), (Words{"a", "12½", "b"}));
  EXPECT_EQ(parts({{"type", "Digits"}, {"individual_digits", true}}, "a12b"), (Words{"a", "1", "2", "b"}));
}

TEST(Punctuation, IsIsolatedUnlessTold) {
  EXPECT_EQ(parts({{"type", "Punctuation"}}, "a,,b"), (Words{"a", ",", ",", "b"}));
  EXPECT_EQ(parts({{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "a,,b"), (Words{"a", ",,", "b"}));
}

TEST(ByteLevel, CutsAsGpt2Does) {
  EXPECT_EQ(parts(byte_level(false), "it's 12  x\n\n"), (Words{"it", "'s", "Ġ12", "Ġ", "Ġx", "ĊĊ"}));
  EXPECT_EQ(parts(byte_level(false), "IT'S"), (Words{"IT", "'", "S"}))
      << "contractions in small letters only";
}

TEST(ByteLevel, PutsASpaceBeforeUnlessThereIsOne) {
  EXPECT_EQ(parts(byte_level(true), "a"), (Words{"Ġa"}));
  EXPECT_EQ(parts(byte_level(true), " a"), (Words{"Ġa"}));
}

TEST(ByteLevel, WithoutWordsKeepsThePiece) {
  EXPECT_EQ(parts(byte_level(false, false), "a b"), (Words{"aĠb"}));
}

TEST(Metaspace, KeepsTheMarkWithTheWordBehindIt) {
  EXPECT_EQ(parts(metaspace("always"), "Hey   friend!"), (Words{"▁Hey", "▁", "▁", "▁friend!"}));
  EXPECT_EQ(parts(metaspace("always"), " a"), (Words{"▁a"})) << "no second mark";
  EXPECT_EQ(parts(metaspace("never"), "a b"), (Words{"a", "▁b"}));
  EXPECT_EQ(parts(metaspace("always", false), "a b"), (Words{"▁a▁b"}));
}

TEST(Metaspace, OfTheSchemeFirstMarksTheStartOfTheTextOnly) {
  EXPECT_EQ(parts(metaspace("first"), "a"), (Words{"▁a"}));
  EXPECT_EQ(parts(metaspace("first"), "a", false), (Words{"a"}));
}

TEST(Metaspace, ReadsTheOlderSpelling) {
  const auto older = [](bool prefix) {
    return Json{{"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", prefix}};
  };
  EXPECT_EQ(parts(older(true), "a b"), (Words{"▁a", "▁b"}));
  EXPECT_EQ(parts(older(false), "a b"), (Words{"a", "▁b"}));
}

TEST(Metaspace, RefusesContradictions) {
  Json json = metaspace("always");
  json["add_prefix_space"] = false;
  EXPECT_EQ(
      error_of([&] { parts(json, "a"); }),
      "error: \"add_prefix_space\" is false, but \"prepend_scheme\" is \"always\"\n  in   tokenizer.json\n");
  EXPECT_EQ(error_of([] { parts(metaspace("last"), "a"); }),
            "error: the prepend_scheme \"last\" is not supported\n"
            "  in   tokenizer.json\n"
            "  try  the known ones are always, first, never\n");
  json = metaspace("never");
  json["replacement"] = "ab";
  EXPECT_EQ(error_of([&] { parts(json, "a"); }),
            "error: \"replacement\" should be one character\n  in   tokenizer.json\n");
}

TEST(Split, HasFiveBehaviors) {
  const Json dash{{"String", "-"}};
  const std::string text = "the-final--countdown";
  EXPECT_EQ(parts(split(dash, "Removed"), text), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(parts(split(dash, "Isolated"), text), (Words{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(parts(split(dash, "MergedWithPrevious"), text), (Words{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(parts(split(dash, "MergedWithNext"), text), (Words{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(parts(split(dash, "Contiguous"), text), (Words{"the", "-", "final", "--", "countdown"}));
}

TEST(Split, InvertedKeepsTheMatches) {
  EXPECT_EQ(parts(split(regex("\\w+"), "Removed", true), "a, b"), (Words{"a", "b"}));
}

TEST(PreTokenizerSequence, CutsPartsFurther) {
  const Json json{
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "WhitespaceSplit"}}, {{"type", "Digits"}}, metaspace("always")}}};
  EXPECT_EQ(parts(json, "ab1 c"), (Words{"▁ab", "▁1", "▁c"}));
}

TEST(PreTokenizerErrors, NameWhatIsNotKnown) {
  EXPECT_EQ(error_of([] {
              parts({{"type", "UnicodeScripts"}}, "a");
            }),
            "error: the pre-tokenizer \"UnicodeScripts\" is not supported\n"
            "  in   tokenizer.json\n"
            "  try  the known ones are BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation, "
            "Sequence, Split, "
            "Whitespace, WhitespaceSplit\n");
  EXPECT_EQ(error_of([] {
              parts(split({{"String", "a"}}, "Doubled"), "a");
            }),
            "error: the split behavior \"Doubled\" is not supported\n"
            "  in   tokenizer.json\n"
            "  try  the known ones are Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous\n");
}

}  // namespace
}  // namespace rankscope::test
