#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/byte_level.h"
#include "text/byte_trie.h"

namespace rankscope::text {
namespace {

TEST(Utf8, RoundTripsEveryCharacter) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_character(text, c);
    size_t at = 0;
    ASSERT_EQ(next_character(text, at), c);
    ASSERT_EQ(at, text.size());
    ASSERT_EQ(count_characters(text), 1u);
    ASSERT_EQ(repair_utf8(text), text);
  }
}

TEST(Utf8, RepairReplacesMaximalSubparts) {
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98"
                        "a"),
            "\uFFFDa");
  EXPECT_EQ(repair_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(Characters, OfTheCategoriesCrateAreThoseOfUnicode8) {
  EXPECT_TRUE(is_punctuation('$')) << "ASCII symbols count";
  EXPECT_FALSE(is_punctuation(U'€'));
  EXPECT_TRUE(is_punctuation(0x166D)) << "a symbol since Unicode 12";
  EXPECT_FALSE(is_punctuation(0x2E4F)) << "punctuation since Unicode 12";
  EXPECT_TRUE(is_control(0xE000));
  EXPECT_TRUE(is_control(0xAD));
  EXPECT_FALSE(is_control(0x0378));
  EXPECT_FALSE(is_control('\n'));
  EXPECT_TRUE(is_nonspacing_mark(0x301));
  EXPECT_FALSE(is_nonspacing_mark(0x1885)) << "a mark since Unicode 9";
}

TEST(Characters, OfTheStandardLibrary) {
  EXPECT_TRUE(is_whitespace(0x85));
  EXPECT_FALSE(is_whitespace(0x200B));
  EXPECT_TRUE(is_numeric(U'½'));
  EXPECT_TRUE(is_word(0x200D));
  EXPECT_FALSE(is_word('-'));
}

TEST(Graphemes, HoldTheirMarks) {
  EXPECT_EQ(grapheme_ends("e\u0301a\r\n"), (std::vector<size_t>{3, 4, 6}));
  EXPECT_EQ(grapheme_ends("🇫🇷👩‍👧"), (std::vector<size_t>{8, 19}));
  EXPECT_TRUE(grapheme_ends("").empty());
}

TEST(ByteLevelAlphabet, HasOnePrintableCharacterPerByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string spelled = to_byte_level(all);
  EXPECT_EQ(count_characters(spelled), 256u);
  EXPECT_EQ(to_byte_level("A \n\xAD\xFF"), "AĠĊŃÿ");
}

TEST(ByteTrie, FindsWhatWasPutIn) {
  const ByteTrie trie({{"abc", 1}, {"ab", 2}, {"b", 3}, {"ab", 9}, {"", 4}});
  const auto find = [&](std::string_view key) {
    ByteTrie::Node node = ByteTrie::kRoot;
    for (const char byte : key)
      if ((node = trie.step(node, byte)) == ByteTrie::kRoot) return int64_t{-1};
    return trie.value(node);
  };
  EXPECT_EQ(find("abc"), 1);
  EXPECT_EQ(find("ab"), 2) << "of equal keys the first";
  EXPECT_EQ(find("b"), 3);
  EXPECT_EQ(find("a"), -1);
  EXPECT_EQ(find("bc"), -1);
  EXPECT_EQ(find(""), -1);
}

}  // namespace
}  // namespace rankscope::text
