// Expressions mean what they mean to the `tokenizers` library: our part is which syntax Oniguruma is asked
// for, what it finds again and again in a text, and where it is stopped.
#include "text/pattern.h"
#include "text/support.h"

namespace rankscope::test {
namespace {

Words matches(const char* expression, const std::string& text) {
  Words out;
  for (const text::Span& span : text::Pattern::regex(expression, "tokenizer.json").spans(text))
    if (span.match) out.push_back(text.substr(span.begin, span.end - span.begin));
  return out;
}

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(Regex, OfLlama3CutsWordsDigitsAndLines) {
  EXPECT_EQ(matches(kLlama3, "It'S 12345 é!!\n\n  x  "),
            (Words{"It", "'S", " ", "123", "45", " é", "!!\n\n", " ", " x", "  "}));
  EXPECT_EQ(matches(kLlama3, "x'ſ"), (Words{"x", "'ſ"})) << "the long s folds to s";
}

TEST(Regex, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(matches("\\s", "a\v\u0085\u00A0\u3000\u200Bb").size(), 4u);
  EXPECT_EQ(matches("[^\\S\\n]+", "a \v\nb"), (Words{" \v"}));
}

TEST(Regex, NumbersAreEveryN) { EXPECT_EQ(matches("\\p{N}+", "1½Ⅷ²٣x"), (Words{"1½Ⅷ²٣"})); }

TEST(Regex, WordCharactersHaveNoJoiners) {
  EXPECT_EQ(matches("\\w+", "a\u200Db"), (Words{"a", "b"}));
  EXPECT_EQ(matches("\\w+", "x²"), (Words{"x²"})) << "Latin-1 has a table of its own";
  EXPECT_EQ(matches("[\\w]+", "x²"), (Words{"x"})) << "but not inside a set";
}

TEST(Regex, HIsAHexDigit) { EXPECT_EQ(matches("\\h+", "xAf0 g"), (Words{"Af0"})); }

TEST(Regex, AnchorsStandForLines) {
  EXPECT_EQ(matches("^.", "a\nb\n"), (Words{"a", "b"}));
  EXPECT_EQ(matches(".$", "a\r\nb"), (Words{"\r", "b"})) << "only \\n ends a line";
  EXPECT_EQ(matches("^", "a\n").size(), 1u) << "no line begins at the very end";
}

TEST(Regex, PlusBehindAnIntervalRepeatsIt) {
  EXPECT_EQ(matches("\\p{N}{2}+", "12345"), (Words{"1234"}));
  EXPECT_EQ(matches("(ab){1,2}+b?", "ababab"), (Words{"ababab"}));
}

TEST(Regex, ALeftOutLowerBoundIsZero) { EXPECT_EQ(matches("a{,2}b", "aaab"), (Words{"aab"})); }

TEST(Regex, BracesThatAreNoIntervalAreText) { EXPECT_EQ(matches("a{x}|}", "aa{x}}"), (Words{"a{x}", "}"})); }

TEST(Regex, CapitalZComesBeforeTheLastLineEnd) { EXPECT_EQ(matches("\\s\\Z", "a\r\n"), (Words{"\r", "\n"})); }

TEST(Regex, WordBoundariesSeeMarks) { EXPECT_EQ(matches("\\bb", "e\u0301b b"), (Words{"b"})); }

TEST(Regex, FlagMLetsTheDotMatchLineEnds) { EXPECT_EQ(matches("(?m:a.b)", "a\nb"), (Words{"a\nb"})); }

TEST(Regex, SetsTakeBracketsAndDashesAsOnigurumaDoes) {
  EXPECT_EQ(matches("[]a]+", "a]b"), (Words{"a]"}));
  EXPECT_EQ(matches("[a-]+", "a-b"), (Words{"a-"}));
  EXPECT_EQ(matches("[&a]+", "a&b"), (Words{"a&"}));
  EXPECT_EQ(matches("[a-z&&[^c]]+", "bcd"), (Words{"b", "d"}));
}

TEST(Regex, PunctHoldsTheSymbolsInEveryVersion) {
  EXPECT_EQ(matches("[[:punct:]]+", "a$,b"), (Words{"$,"}));
  EXPECT_EQ(matches("[[:^punct:]]+", "$ab,"), (Words{"ab"}));
  EXPECT_EQ(matches("[^[:punct:]b]+", "$ab,"), (Words{"a"}));
  EXPECT_EQ(matches("[][:punct:]]+", "a]$b"), (Words{"]$"})) << "the first bracket stands for itself";
  EXPECT_EQ(matches("\\[[:punct:]", "[$[u"), (Words{"[u"}))
      << "behind an escaped bracket it is a set of letters";
}

TEST(Regex, KeepDropsWhatCameBefore) { EXPECT_EQ(matches("a\\Kb", "abb"), (Words{"b"})); }

TEST(Regex, EmptyMatchesDoNotFollowAMatch) { EXPECT_EQ(matches("x*", "axxb"), (Words{"", "xx", ""})); }

TEST(Regex, OffsetsAreBytes) { EXPECT_EQ(matches("b", "é🙂b𝒳b"), (Words{"b", "b"})); }

TEST(RegexErrors, NameTheExpression) {
  EXPECT_EQ(error_of([] { matches("(a", "a"); }),
            "error: the regular expression \"(a\" is not valid or not supported (end pattern with "
            "unmatched parenthesis)\n"
            "  in   tokenizer.json\n");
  EXPECT_EQ(
      error_of([] { matches(std::string(70000, 'a').c_str(), "a"); }),
      "error: a regular expression has 70000 bytes, more than the 65536 allowed\n  in   tokenizer.json\n");
}

// Each of these can take for ever where no limit looks.
TEST(RegexErrors, RefuseWhatHasNoLimit) {
  for (const char* letter : {"\\g", "\\X", "\\y", "\\Y"})
    EXPECT_EQ(error_of([&] { matches((std::string("(?<x>a)") + letter + "<x>").c_str(), "a"); }),
              std::string("error: the regular expression uses ") + letter +
                  ", which is not supported\n  in   tokenizer.json\n");
  for (const char* expression : {"(?~abc)", "(?{x})a", "(*FAIL)"})
    EXPECT_NE(error_of([&] { matches(expression, "a"); }).find("\" is not valid or not supported ("),
              std::string::npos)
        << expression;
  EXPECT_EQ(matches("\\\\g", "\\g"), (Words{"\\g"})) << "a backslash and a letter";
}

TEST(RegexErrors, EndAMatchThatIsNoPartOfTheText) {
  const std::string error = error_of([] { matches("a(?<=\\Ka)|b(?<=\\Kab)", "ab"); });
  EXPECT_EQ(
      error.find("error: the regular expression \"a(?<=\\Ka)|b(?<=\\Kab)\" matches what is no part of the"),
      0u)
      << error;
}

TEST(RegexErrors, EndWhatBacktracksForEver) {
  const std::string text = std::string(200, 'a') + "b";
  const std::string error = error_of([&] { matches("(a+a+)+c", text); });
  EXPECT_EQ(error.find("error: the regular expression \"(a+a+)+c\" takes too long on this text"), 0u)
      << error;
  // Few steps at each place, but at many places.
  const std::string quadratic =
      error_of([] { matches("\\p{L}*[bc]x?\\d", std::string(20'000, 'a') + "zb"); });
  EXPECT_EQ(quadratic.find("error: the regular expression \"\\p{L}*[bc]x?\\d\" takes too long on this text"),
            0u)
      << quadratic;
  const std::string deep = error_of([] { matches("(?:a|b)+$", std::string(8 << 20, 'a') + "\x01"); });
  EXPECT_EQ(deep.find("error: the regular expression \"(?:a|b)+$\" needs too much memory on this text"), 0u)
      << deep;
}

}  // namespace
}  // namespace rankscope::test
