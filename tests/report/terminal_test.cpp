#include "report/terminal.h"
#include "report/names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "report/text.h"
#include "tables.h"

namespace rankscope {
namespace {

std::string print(const ResultTable& table, std::vector<Sentence> verdict = {}, TerminalStyle style = {},
                  std::vector<std::string> notes = {}) {
  const Json manifest;
  std::ostringstream out;
  print_results({table, std::move(verdict), std::move(notes), manifest}, style, out);
  return out.str();
}

int widest(const std::string& text) {
  int width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) width = std::max(width, display_width(line));
  return width;
}

TEST(Terminal, OneVariantIsOneTableOfLayers) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  EXPECT_EQ(print(t),
            "full  █▆▅  content tokens at hook_resid_post, 8 samples\n"
            "layer   residual  eff.rank    cosine   entropy     sinks   massive\n"
            "embed        0.9      0.45       0.1         -         -         -\n"
            "0            0.7      0.35       0.3       0.4       0.5     12345\n"
            "1            0.5      0.25       0.5       0.4       0.5     12345\n"
            "\n"
            "residual: what tells the tokens apart, as a share of their size (0: all alike);\n"
            "eff.rank: share of the rank there could be; cosine: mean over pairs of tokens;\n"
            "entropy: of attention, mean over heads (1: uniform); sinks: share of the layer's\n"
            "heads, by margin; massive: largest activation over the median, after the layer\n"
            "\n");
}

TEST(Terminal, OnANarrowTerminalColumnsThatDoNotFitStandBelow) {
  ResultTable t;
  add_variant(t, "full", 1, 0.2, 0.0);
  TerminalStyle style;
  style.width = 40;
  EXPECT_TRUE(print(t, {}, style)
                  .starts_with("full  █▆\n"
                               "  content tokens at hook_resid_post, 8\n"
                               "  samples\n"
                               "layer   residual  eff.rank    cosine\n"
                               "embed        0.9      0.45       0.1\n"
                               "0            0.7      0.35       0.3\n"
                               "\n"
                               "layer    entropy     sinks   massive\n"
                               "embed          -         -         -\n"
                               "0            0.4       0.5     12345\n"
                               "\n"))
      << print(t, {}, style);
}

TEST(Terminal, AHeadingThatIsTooLongForOneLineHasTwo) {
  const std::string name = "replace:softmax=sigmoid@L1,L2,L3,L4";
  ResultTable t;
  add_variant(t, name, 2, 0.2, 0.0);
  EXPECT_TRUE(print(t).starts_with(name + "  █▆▅\n  content tokens at hook_resid_post, 8 samples\nlayer"))
      << print(t);
}

TEST(Terminal, WithoutUnicodeASentenceIsPlain) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  Sentence s{"sink", "the strongest is L0H4 with margin 2.38 ± 0.12 nats, of 4.30 ± 0.36"};
  TerminalStyle style;
  style.unicode = false;
  const std::string text = print(t, {s}, style);
  EXPECT_NE(text.find("2.38 +- 0.12 nats, of 4.30 +- 0.36"), std::string::npos) << text;
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 128; })) << text;
}

TEST(Terminal, TokensOfAnExpertAreNotCountedAsSamples) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  for (const char* metric : {"expert_rank", "expert_rank_rel"})
    t.rows.push_back({"full", "blocks.0.mlp", 0, 3, metric, 2, kNone, 17, 0, "all", ""});
  EXPECT_NE(print(t).find(", 8 samples\n"), std::string::npos);
}

TEST(Terminal, TheCeilingOfARankStandsBehindIt) {
  ResultTable t;
  for (int32_t head = 0; head < 2; ++head) {
    const auto row = [&](int32_t layer, const char* metric, double value) {
      t.rows.push_back({"replace:softmax=fastmax@L1",
                        "blocks." + std::to_string(layer) + ".attn.hook_pattern", layer, head, metric, value,
                        kNone, 8, layer, "all", ""});
    };
    row(0, "numerical_rank", 20);  // softmax: no law, so nothing to compare with
    row(1, "numerical_rank", 9 + head);
    row(1, "rank_ceiling", 15);
    row(0, "attention_entropy", 0.5);
  }
  const std::string text = print(t);
  EXPECT_NE(text.find("layer    entropy attn.rank\n"
                      "0            0.5         -\n"
                      "1              -    9.5/15\n"),
            std::string::npos)
      << text;
  EXPECT_NE(short_name("attn.rank"), nullptr);
}

// The branch of a decoder that asks an encoder: its tokens are those it asks with, in every layer.
TEST(Terminal, AttentionToAnotherStreamIsShownWhereItAsks) {
  ResultTable t;
  for (int32_t layer = 0; layer < 2; ++layer)
    t.rows.push_back({"full", "blocks." + std::to_string(layer) + ".ln_cross.hook_normalized", layer, -1,
                      "residual_fro_rel", 0.5 + 0.25 * layer, kNone, 8, layer, "content", "cross"});
  EXPECT_EQ(print(t).substr(0, print(t).find("\n\n")),
            "cross: full  ▅▇  content tokens at ln_cross.hook_normalized, 8 samples\n"
            "layer   residual\n"
            "0            0.5\n"
            "1           0.75");
}

TEST(Terminal, WhatStandsOutComesFirstAndWhatIsNormalIsOneLine) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  const Sentence found{.topic = "sink", .text = "4 heads are sinks: the strongest is L1H0", .found = true};
  const Sentence normal{.topic = "head", .text = "no head is idle: the weakest is L2H6"};
  const Sentence other{.topic = "rank", .text = "no QK map is low in rank: the lowest is L0H0"};
  const Sentence unknown{.topic = "collapse", .text = "not known: too few samples", .known = false};
  const std::string both = print(t, {normal, found, unknown, other});
  EXPECT_EQ(both.find("what stands out\n  sink      4 heads are sinks: the strongest is L1H0\n\nfull"), 0u)
      << both;
  EXPECT_NE(
      both.find("verdict\n  normal    no head is idle; no QK map is low in rank (numbers: --out, --json)\n"
                "? collapse  not known: too few samples\n"),
      std::string::npos)
      << both;
  const Sentence stream{.topic = "head", .text = "encoder: no head is idle: the weakest is L2H6"};
  EXPECT_NE(print(t, {normal, stream, found}).find("no head is idle; encoder: no head is idle (numbers"),
            std::string::npos);
}

TEST(Terminal, WhereNothingStandsOutThatIsSaidAndTheRestIsOneLine) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  const Sentence normal{.topic = "head", .text = "no head is idle: the weakest is L2H6"};
  const Sentence other{.topic = "rank", .text = "no QK map is low in rank: the lowest is L0H0"};
  const Sentence unknown{.topic = "collapse", .text = "not known: too few samples", .known = false};
  const std::string text = print(t, {normal, other});
  EXPECT_EQ(text.find("nothing stands out\n\nfull"), 0u) << text;
  EXPECT_TRUE(text.ends_with(
      "verdict\n  normal    no head is idle; no QK map is low in rank (numbers: --out, --json)\n"))
      << text;
  EXPECT_EQ(print(t, {normal, unknown}).find("nothing stands out; what is not known stands below\n\nfull"),
            0u);
  EXPECT_EQ(print(t, {unknown}).find("nothing"), std::string::npos);
}

// "normal" would hide both that it was tried and what it costs.
TEST(Terminal, AVariantThatWasAskedForIsToldInFullAlsoWhereItChangesNothing) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  const Sentence found{.topic = "replaced", .text = "softmax=a costs 0.2; rank: 1, 2", .found = true};
  const Sentence little{.topic = "replaced", .text = "softmax=b costs 0; rank: 1, 1", .asked = true};
  const Sentence unclear{
      .topic = "replaced", .text = "softmax=c costs 0.1; rank: 1, 3", .known = false, .asked = true};
  const Sentence normal{.topic = "head", .text = "no head is idle: the weakest is L2H6"};
  const std::string text = print(t, {normal, found, little, unclear});
  EXPECT_NE(text.find("verdict\n"
                      "  normal    no head is idle (numbers: --out, --json)\n"
                      "  replaced  softmax=b costs 0; rank: 1, 1\n"
                      "? replaced  softmax=c costs 0.1; rank: 1, 3\n"),
            std::string::npos)
      << text;
}

TEST(Terminal, VariantsThatDifferAtTheEndOfLongNamesAreToldApart) {
  ResultTable t;
  add_variant(t, "full", 2, 0.2, 0.0);
  for (const char* to : {"nothing", "uniform", "random"}) {
    const std::string name = std::string("replace:softmax=shifted_control:nats=2,to=") + to;
    add_variant(t, name, 2, 0.2, 0.5);
    t.rows.push_back(plain_row(name, 3.5, "nll"));
  }
  std::string text = print(t);
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (const char* to : {"to=nothing ", "to=uniform ", "to=random "}) {
    size_t times = 0;  // in the loss, over its layers, side by side, in the picture
    for (size_t at = text.find(to); at != std::string::npos; at = text.find(to, at + 1)) ++times;
    EXPECT_EQ(times, 4u) << to << text;
  }
}

TEST(Terminal, SeveralVariantsAreDrawnInOnePicture) {
  ResultTable t;
  add_variant(t, "full", 4, 0.02, 0.0);
  EXPECT_EQ(print(t).find("└"), std::string::npos);
  add_variant(t, "-skip", 4, 0.2, 0.5);
  const std::string both = print(t);
  EXPECT_NE(both.find("residual (log)"), std::string::npos) << both;  // from 0.9 to 0.1
  EXPECT_NE(both.find("└"), std::string::npos);
  EXPECT_LE(widest(both), 80);
  EXPECT_EQ(print(t, {}, {.width = 80, .colour = false, .unicode = false}).find("\xE2"), std::string::npos);
}

TEST(Terminal, PreNormModelsAreReadWhereAttentionSeesThem) {
  ResultTable t;
  add_tokens(t, "full", "blocks.0.hook_resid_post", 0, 1, 0.1);
  add_tokens(t, "full", "blocks.0.ln1.hook_normalized", 0, 0, 0.8);
  add_tokens(t, "full", "ln_final.hook_normalized", -1, 1, 0.6);
  EXPECT_EQ(print(t),
            "full  ▇▅  content tokens at ln1.hook_normalized, 8 samples\n"
            "layer   residual  eff.rank    cosine\n"
            "0            0.8       0.4       0.2\n"
            "final        0.6       0.3       0.4\n"
            "\n"
            "residual: what tells the tokens apart, as a share of their size (0: all alike);\n"
            "eff.rank: share of the rank there could be; cosine: mean over pairs of tokens\n"
            "\n");
}

// The decoder's blocks stand between those of the attention to the encoder, as a scan files them.
TEST(Terminal, EveryStreamHasTablesOfItsOwn) {
  ResultTable t;
  const auto add = [&](const char* stream, const auto& fill) {
    const size_t before = t.rows.size();
    fill();
    for (size_t i = before; i < t.rows.size(); ++i) t.rows[i].stream = stream;
  };
  for (const char* variant : {"full", "-skip"}) {
    add("encoder", [&] { add_tokens(t, variant, "blocks.0.hook_resid_post", 0, 1, 0.8); });
    add("decoder", [&] { add_tokens(t, variant, "blocks.0.hook_resid_post", 0, 1, 0.6); });
    add("cross", [&] {
      t.rows.push_back(
          {variant, "blocks.0.cross.hook_pattern", 0, 0, "attention_entropy", 0.25, 0, 1, 0, "all"});
    });
    add("decoder", [&] { add_tokens(t, variant, "blocks.1.hook_resid_post", 1, 2, 0.4); });
  }
  const std::string text = print(t);
  const auto at = [&](const char* what) {
    const size_t place = text.find(what);
    EXPECT_NE(place, text.npos) << what << "\n" << text;
    EXPECT_EQ(text.find(what, place + 1), text.npos) << what << " twice\n" << text;
    return place;
  };
  EXPECT_LT(at("encoder: full  "), at("encoder: -skip  "));
  EXPECT_LT(at("encoder: -skip  "), at("decoder: full  "));
  EXPECT_LT(at("decoder: -skip  "), at("cross: full\n"));
  EXPECT_LT(at("cross: -skip\n"), at("variants side by side: encoder\n"));
  EXPECT_LT(at("variants side by side: encoder\n"), at("variants side by side: decoder\n"));
  EXPECT_EQ(text.find("side by side: cross"), text.npos) << text;  // it has no tokens and no output
}

TEST(Terminal, WhatWasNotMeasuredTakesNoRoom) {
  ResultTable t;
  t.rows.push_back({"full", "blocks.0.attn.hook_pattern", 0, 0, "attention_entropy", 0.25, 0, 1, 0, "all"});
  EXPECT_EQ(
      print(t),
      "full\nlayer    entropy\n0           0.25\n\nentropy: of attention, mean over heads (1: uniform)\n\n");
}

TEST(Terminal, SamplesAreCountedWhateverWasMeasured) {
  ResultTable t;
  t.rows.push_back(
      {"full", "blocks.0.hook_resid_post", 0, -1, "residual_fro_rel", 0.5, 0.1, 7, 1, "content"});
  EXPECT_TRUE(print(t).starts_with("full  ▅  content tokens at hook_resid_post, 7 samples\n")) << print(t);
}

TEST(Terminal, TokensThatAreNotContentAreNotCalledSo) {
  ResultTable t;
  t.rows.push_back({"full", "blocks.0.hook_resid_post", 0, -1, "effective_rank_rel", 1, kNone, 1, 1, "all"});
  EXPECT_TRUE(print(t).starts_with("full  all tokens at hook_resid_post, 1 sample\n")) << print(t);
}

TEST(Terminal, WhatHasNoTableSaysWhereItIs) {
  ResultTable t;
  t.rows.push_back({"full", "blocks.0.attn", 0, 0, "qk_pr", 3.0, kNone, 1, 0, ""});
  EXPECT_NE(print(t).find("--format csv prints it"), std::string::npos);
}

TEST(Terminal, OutputKlSaysWhatItCounts) {
  const auto said = [](const char* site) {
    ResultTable t;
    add_tokens(t, "full", "blocks.0.hook_resid_post", 0, 1, 0.5);
    t.rows.push_back({"-skip", site, -1, -1, "output_kl", 0.5, 0.1, 8, 1, "all"});
    return print(t);
  };
  EXPECT_NE(said("unembed.hook_out").find("in nats"), std::string::npos);
  EXPECT_NE(said("blocks.0.hook_resid_post").find("relative change of the last hidden state"),
            std::string::npos);
}

TEST(Terminal, VariantsStandSideBySideWithTheirOutputKl) {
  ResultTable t;
  add_variant(t, "full", 2, 0.1, 0.0);
  add_variant(t, "-skip", 2, 0.44, 1.25);
  const std::string text = print(t);
  EXPECT_NE(text.find("variants side by side\n"
                      "variant output_kl  residual                     first      last\n"
                      "full            0  █▇▆                            0.9       0.7\n"
                      "-skip        1.25  █▄▁                            0.9      0.02\n"),
            std::string::npos)
      << text;
}

TEST(Terminal, TheFullNetworkIsNoDistanceFromItself) {
  ResultTable t;
  add_tokens(t, "full", "blocks.0.hook_resid_post", 0, 1, 0.5);
  t.rows.push_back(plain_row("null:shuffled", 0.5, "attention_entropy"));
  const std::string text = print(t);
  EXPECT_NE(text.find("full                  0"), std::string::npos) << text;
  EXPECT_NE(text.find("null:shuffled         -"), std::string::npos) << text;
}

TEST(Terminal, ManyAblatedHeadsAreCountedNotListed) {
  ResultTable t;
  add_variant(t, "full", 1, 0.1, 0.0);
  for (int h = 0; h < 40; ++h) t.rows.push_back(plain_row("-head:L0H" + std::to_string(h), 0.1, "output_kl"));
  const std::string text = print(t);
  EXPECT_NE(text.find("-head:L0H11"), std::string::npos);
  EXPECT_EQ(text.find("-head:L0H12"), std::string::npos);
  EXPECT_NE(text.find("... and 28 more heads taken out"), std::string::npos);
}

TEST(Terminal, SentencesWrapBesideTheirTopicAndDoubtIsMarked) {
  const std::string text =
      print({},
            {{.topic = "collapse", .text = std::string(20, 'a') + " " + std::string(60, 'b'), .asked = true},
             {"support", "not known: scan with --off skip", false}},
            {}, {"2 samples were cut"});
  EXPECT_EQ(text,
            "verdict\n"
            "  collapse  " +
                std::string(20, 'a') + "\n" + "            " + std::string(60, 'b') +
                "\n"
                "? support   not known: scan with --off skip\n"
                "  note      2 samples were cut\n");
}

TEST(Terminal, NoLineIsWiderThanAsked) {
  ResultTable t;
  add_variant(t, "full", 90, 0.005, 0.0);
  add_variant(t, "-日本語日本語日本語日本語日本語日本語日本語日本語", 90, 0.009, 3.0);
  add_variant(t, std::string(300, 'v'), 3, 0.1, 1e-300);
  const std::vector<Sentence> verdict{{"topic", std::string(500, 'x')},
                                      {"日本語日本語日本語",
                                       "🙂🙂🙂 "
                                       "🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂"
                                       "🙂🙂🙂🙂🙂🙂🙂🙂🙂"}};
  for (const int width : {20, 40, 80, 81, 120}) {
    EXPECT_LE(widest(print(t, verdict, {.width = width}, {std::string(200, 'n')})), width) << width;
    EXPECT_LE(widest(print(t, verdict, {.width = width, .unicode = false})), width) << width;
  }
}

TEST(Terminal, HostileNamesDoNotReachTheTerminal) {
  ResultTable t;
  add_variant(t, "\x1b]0;owned\x07", 1, 0.1, 0.0);
  add_variant(t, "full", 1, 0.1, 0.0);
  const std::string text = print(t, {{"\x1b[31m", "line\nbreak \x9b"}}, {}, {"\x1b[2J"});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_NE(text.find("line\\x0abreak"), std::string::npos);
}

TEST(Terminal, ColourIsThereOnlyWhenAskedFor) {
  ResultTable t;
  add_variant(t, "full", 1, 0.1, 0.0);
  EXPECT_EQ(print(t).find('\x1b'), std::string::npos);
  EXPECT_NE(print(t, {}, {.colour = true}).find("\x1b[1mfull"), std::string::npos);
}

TEST(Terminal, AFileGetsNoColourAndEightyColumns) {
  FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const TerminalStyle style = terminal_style(::fileno(file));
  std::fclose(file);
  EXPECT_FALSE(style.colour);
  EXPECT_EQ(style.width, 80);
  EXPECT_TRUE(style.unicode);
}

TEST(Terminal, NoColorIsHonouredOnATerminal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    GTEST_SKIP() << "no pseudo-terminals here";
  const int side = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  if (side < 0) GTEST_SKIP() << "no pseudo-terminals here";
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(terminal_style(side).colour);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(terminal_style(side).colour);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal_style(side).colour);
  ::close(side);
  ::close(terminal);
}

}  // namespace
}  // namespace rankscope
