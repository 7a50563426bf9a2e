#include "base/error.h"

#include "base/test_support.h"

namespace rankscope {
namespace {

TEST(Error, RendersWhatWhereAndWhatToDo) {
  const Error error =
      Error("expected 12 heads, but got 0").in("config.json").hint("check num_attention_heads");
  EXPECT_EQ(error.render(),
            "error: expected 12 heads, but got 0\n  in   config.json\n  try  check num_attention_heads\n");
}

TEST(Error, LeavesOutLinesThatHaveNothingToSay) {
  EXPECT_EQ(Error("no").render(), "error: no\n");
  EXPECT_EQ(Error("no").hint("yes").render(), "error: no\n  try  yes\n");
}

TEST(Error, KeepsTheInnermostPlaceAndAdvice) {
  const Error error = Error("no").in("inner").in("outer").hint("first").hint("second");
  EXPECT_EQ(error.place(), "inner");
  EXPECT_EQ(error.advice(), "first");
}

TEST(Error, KnowsARunFromAUsage) {
  EXPECT_EQ(Error("x").kind(), ErrorKind::run);
  EXPECT_EQ(usage_error("x").kind(), ErrorKind::usage);
}

TEST(Error, EscapesWhatCouldDriveATerminal) {
  EXPECT_EQ(Error("a\x1b[2Jb").in("c\nd").render(), "error: a\\x1b[2Jb\n  in   c\\x0ad\n");
}

TEST(UnknownName, SuggestsTheNearestAndTheList) {
  const Error error =
      unknown_name("lens", "stabel_rank", {"sinks", "stable_rank", "mixing"}, "rankscope list");
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_EQ(error.message(), "there is no lens \"stabel_rank\"");
  EXPECT_EQ(error.advice(), "stable_rank, sinks, mixing   (rankscope list shows all 3)");
}

TEST(Printable, KeepsPlainTextAndUnicode) { EXPECT_EQ(printable("Grüße, 世界"), "Grüße, 世界"); }

TEST(Printable, EscapesControlCharactersOfBothSets) {
  EXPECT_EQ(printable("\t\x7f"), "\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // U+009B starts a terminal sequence just as ESC [ does
}

TEST(Printable, EscapesInvalidUtf8ByteByByte) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");                    // overlong
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");           // the escape character in three bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last character
  EXPECT_EQ(printable("\xe4\xb8"), "\\xe4\\xb8");                    // cut short
  EXPECT_EQ(printable(std::string(1, '\0')), "\\x00");
}

TEST(Printable, EscapesWhatTurnsTheDirectionOfWriting) {
  EXPECT_EQ(printable("a\u202Egnp.exe"), "a\\u202egnp.exe");
  EXPECT_EQ(printable("\u061C\u200F\u2028\u2066\u2069"), "\\u061c\\u200f\\u2028\\u2066\\u2069");
  EXPECT_EQ(printable("\u200D\u2027\u202F\u2065\u206A"), "\u200D\u2027\u202F\u2065\u206A");
  EXPECT_NE(Error("a\u202Eb").render().find("a\\u202eb"), std::string::npos);
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("äöü", 3), "ä...");  // two bytes each
  EXPECT_EQ(printable("ab\n", 3), "ab...");
}

}  // namespace
}  // namespace rankscope
