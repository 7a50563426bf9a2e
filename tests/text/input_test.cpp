#include "text/input.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "text/support.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

class Input : public testing::Test {
 protected:
  std::string file(const char* name, const std::string& content) {
    const fs::path path = folder / name;
    write_file(path, content);
    return path.string();
  }
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  template <typename Action>
  std::string error(Action action) {
    std::string text = error_of(action);
    const size_t at = text.find(folder.string());
    return at == text.npos ? text : text.replace(at, folder.string().size(), "F");
  }

  fs::path folder = fs::temp_directory_path() / ("rankscope_input_" + std::to_string(::getpid()));
};

TEST_F(Input, PlainTextHasOneSamplePerLineThatIsNotEmpty) {
  const auto samples = read_text(file("a.txt",
                                      "\xEF\xBB\xBF"
                                      "first line\r\n\n  \n second\n"));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].text, "first line");
  EXPECT_EQ(samples[1].text, " second");
  EXPECT_EQ(samples[1].place, (folder / "a.txt").string() + ", line 4");
  EXPECT_FALSE(samples[0].pair);
}

TEST_F(Input, PlainTextCanBeReadWhole) {
  const auto samples = read_text(file("a.txt", "\xEF\xBB\xBFone\n\ntwo\n"), true);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].text, "one\n\ntwo\n");
}

TEST_F(Input, TablesGiveTheColumnThatIsNamed) {
  const auto csv = read_text(file("a.csv", "id,body\n1,\"one, two\"\n2,\n"), false, "body");
  ASSERT_EQ(csv.size(), 2u);
  EXPECT_EQ(csv[0].text, "one, two");
  EXPECT_EQ(csv[1].text, "");
  EXPECT_FALSE(csv[0].line);
  for (const std::string text : {"'= is a sign", "'@home", "'-- he said", "'+1 for that"})
    EXPECT_EQ(read_text(file("a.csv", "text\n" + text + "\n"), false, "").front().text, text);
  const auto tsv = read_text(file("a.tsv", "id\tbody\r\n1\tsay \"yes\"\r\n"), false, "body");
  ASSERT_EQ(tsv.size(), 1u);
  EXPECT_EQ(tsv[0].text, "say \"yes\"");
  EXPECT_EQ(error([&] { read_text(file("a.csv", "id,body\n1,a\n")); }),
            "error: this is a table: which of its columns holds the texts?\n  in   F/a.csv\n"
            "  try  --column NAME, one of id, body\n");
  EXPECT_EQ(error([&] { read_text(file("a.tsv", "id\tbody\n1\ta\n"), false, "bdy"); }),
            "error: there is no column \"bdy\"\n  in   F/a.tsv\n  try  body, id\n");
  EXPECT_EQ(error([&] { read_text(file("a.tsv", "id\tbody\n1\n"), false, "body"); }),
            "error: expected 2 cells, but got 1\n  in   F/a.tsv, line 2\n");
  EXPECT_EQ(read_text(file("a.jsonl", "{\"body\": \"x\"}\n"), false, "body").at(0).text, "x");
  EXPECT_NE(error([&] { read_text(file("a.txt", "x\n"), false, "body"); }).find("--column names a column"),
            std::string::npos);
}

TEST_F(Input, WhatIsNoTextIsRefusedByName) {
  const auto of = [&](const char* name, const std::string& content) {
    return error([&] { read_text(file(name, content)); });
  };
  EXPECT_EQ(of("a.parquet", "PAR1\x15\x04").find("error: this is a Parquet file, which is not read here\n"),
            0u);
  EXPECT_NE(of("a.parquet", "PAR1").find("pandas.read_parquet("), std::string::npos);
  EXPECT_EQ(of("a.gz", "\x1F\x8B\x08").find("error: this file is compressed\n"), 0u);
  EXPECT_EQ(of("a.txt",
               "\xFF\xFE"
               "a")
                .find("error: this text is in UTF-16"),
            0u);
  EXPECT_EQ(
      of("a.txt", std::string("text\0more", 9)).find("error: this is not a text: it holds binary data\n"),
      0u);
  EXPECT_EQ(of("a.pdf", "%PDF-1.7\n").find("error: this is a PDF, which is not read here\n"), 0u);
  EXPECT_EQ(of("a.txt", "PARIS is a city\n"), "no error");
  EXPECT_EQ(of("a.txt",
               "Les enfants \xE9taient \xE0 l'\xE9"
               "cole.\n")
                .find("error: this text is not in UTF-8\n"),
            0u);
  EXPECT_EQ(of("a.txt", "Les enfants étaient à l'école. 한국어 😀\n"), "no error");
  EXPECT_EQ(of("a.txt", std::string(2000, 'a') + "\xE9\n"), "no error");  // one byte that went wrong
  EXPECT_EQ(of("a.json", "[{\"text\": \"x\"}, {\"text\": \"y\"}]\n").find("error: this is one JSON array"),
            0u);
  EXPECT_EQ(of("a.txt", "[sic] is Latin\n"), "no error");
}

TEST_F(Input, JsonlHasTextsAndPairs) {
  const auto samples = read_text(
      file("a.jsonl", "{\"text\": \"a\\nb\"}\n\n{\"text\": \"c\", \"text_pair\": \"\", \"x\": 1}\n"));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].text, "a\nb");
  EXPECT_EQ(samples[1].pair, "");
  std::istringstream stream("{\"text\": \"é\"}");
  EXPECT_EQ(read_text_jsonl(stream, "standard input").at(0).text, "é");
}

TEST_F(Input, TextErrorsNameFileAndLine) {
  EXPECT_EQ(error([&] { read_text(file("a.txt", " \n\n")); }),
            "error: the text is empty\n  in   F/a.txt\n  try  give one sample per line\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "{\"text\": \"a\"}\n{oops\n")); }),
            "error: this line is not valid JSON\n  in   F/a.jsonl, line 2\n  try  JSONL has one JSON value "
            "per line\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "{\"text\": \"a\", \"n\": 1e999}")); }),
            "error: this JSON holds a number too large to read\n  in   F/a.jsonl, line 1\n");
  EXPECT_EQ(read_text(file("a.jsonl", "{\"text\": \"\"}")).at(0).text, "");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "{\"txt\": \"\", \"n\": 1, \"body\": \"b\"}")); }),
            "error: there is no field \"text\"\n  in   F/a.jsonl, line 1\n  try  --column NAME, one of body, "
            "txt\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "{\"n\": 1}")); }),
            "error: there is no field \"text\"\n  in   F/a.jsonl, line 1\n  try  none of its fields holds a "
            "text: n\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "{}")); }),
            "error: there is no field \"text\"\n  in   F/a.jsonl, line 1\n  try  the object is empty\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "\n{\"text\": 7}")); }),
            "error: \"text\" should be a string\n  in   F/a.jsonl, line 2\n");
  EXPECT_EQ(
      error([&] { read_text(file("a.jsonl", "{\"text\": \"a\"}\n{\"text\": null}")); }),
      "error: \"text\" is null, and no text\n  in   F/a.jsonl, line 2\n  try  leave the line out, or give "
      "it an empty text: \"\"\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "[1]")); }),
            "error: expected a JSON object, but got array\n  in   F/a.jsonl, line 1\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", "")); }),
            "error: the file has no samples\n  in   F/a.jsonl\n  try  give one {\"text\": ...} per line\n");
  EXPECT_EQ(error([&] { read_text(file("a.jsonl", std::string(100000, '['))); }),
            "error: the JSON is nested too deep\n  in   F/a.jsonl, line 1\n");
  EXPECT_EQ(
      error([&] { read_text((folder / "none.txt").string()); }),
      "error: cannot open the file: No such file or directory\n  in   F/none.txt\n  try  check the path\n");
}

TEST_F(Input, TokenIdsComeInFourSpellings) {
  const auto samples =
      read_token_ids(file("ids", "1 2\t3\n4,5, 6\n\n[7, 8]\n{\"ids\": [9]}\n{\"input_ids\": [10, 11]}\n"));
  EXPECT_EQ(samples, (std::vector<TokenIds>{{{1, 2, 3}}, {{4, 5, 6}}, {{7, 8}}, {{9}}, {{10, 11}}}));
}

TEST_F(Input, ADecoderMayHaveIdsOfItsOwn) {
  const auto samples =
      read_token_ids(file("ids", "{\"input_ids\": [1, 2, 3], \"decoder_input_ids\": [0, 9]}\n[4]\n"));
  EXPECT_EQ(samples, (std::vector<TokenIds>{{{1, 2, 3}, {0, 9}}, {{4}, {}}}));
  // What `tokenize` writes, and what a tokenizer of Hugging Face gives: padding is left out.
  EXPECT_EQ(read_token_ids(file("ids",
                                "{\"ids\": [1, 2, 3], \"types\": [0, 0, 1]}\n"
                                "{\"input_ids\": [9, 1, 2, 9], \"token_type_ids\": [0, 0, 1, 0], "
                                "\"attention_mask\": [0, 1, 1, 0]}\n")),
            (std::vector<TokenIds>{{.ids = {1, 2, 3}, .types = {0, 0, 1}},
                                   {.ids = {1, 2}, .types = {0, 1}, .masked = 2}}));
  EXPECT_EQ(read_token_ids(file("ids",
                                "{\"ids\": [4], \"decoder_input_ids\": [0, 7, 9], "
                                "\"decoder_attention_mask\": [1, 1, 0]}\n")),
            (std::vector<TokenIds>{{.ids = {4}, .decoder = {0, 7}, .masked = 1}}));
  EXPECT_EQ(error([&] { read_token_ids(file("ids", "{\"ids\": [4, 5], \"attention_mask\": [1]}")); }),
            "error: \"attention_mask\" has 1 numbers for 2 ids\n  in   F/ids, line 1\n");
  EXPECT_EQ(error([&] { read_token_ids(file("ids", "{\"ids\": [1], \"decoder_input_ids\": []}")); }),
            "error: \"decoder_input_ids\" has no ids\n  in   F/ids, line 1\n");
}

TEST_F(Input, TokenIdErrorsNameFileAndLine) {
  const auto refused = [&](const std::string& content) {
    return error([&] { read_token_ids(file("ids", content)); });
  };
  EXPECT_EQ(refused("1\n2 x3"),
            "error: \"x3\" is not a token id\n  in   F/ids, line 2\n"
            "  try  ids are whole numbers separated by blanks or commas\n");
  EXPECT_EQ(refused("1 -2"), "error: expected ids from 0 to 2147483647, but got -2\n  in   F/ids, line 1\n");
  EXPECT_EQ(refused("99999999999"),
            "error: expected ids from 0 to 2147483647, but got 99999999999\n  in   F/ids, line 1\n");
  EXPECT_EQ(refused("99999999999999999999").find("error: \"99999999999999999999\" is not a token id"), 0u);
  EXPECT_EQ(refused("[1, 2.5]"), "error: id 1 of the list is not a whole number\n  in   F/ids, line 1\n");
  EXPECT_EQ(refused("[18446744073709551615]"),
            "error: id 0 of the list is not a whole number\n  in   F/ids, line 1\n");
  EXPECT_EQ(
      refused("{\"tokens\": [1]}"),
      "error: expected a list of ids, {\"ids\": [...]} or {\"input_ids\": [...]}\n  in   F/ids, line 1\n");
  EXPECT_EQ(refused("[]"), "error: this sample has no ids\n  in   F/ids, line 1\n");
  EXPECT_EQ(refused(",,"), "error: this sample has no ids\n  in   F/ids, line 1\n");
  EXPECT_EQ(
      refused(""),
      "error: the file has no token ids\n  in   F/ids\n  try  give one sample per line, as 101 2023 102\n");
}

// A sample takes two hundred bytes and a line may have one.
TEST_F(Input, MoreSamplesThanCanBeAskedForAreCountedAndNotKept) {
  std::string text, ids, table = "text,n\n", objects;
  for (size_t i = 0; i < kMostSamples + 2; ++i)
    text += "a\n", ids += "7\n", table += "a,1\n", objects += "{\"text\":\"\"}\n";
  for (const auto& [name, content] : {std::pair{"a.txt", text}, {"a.csv", table}}) {
    Unread unread;
    EXPECT_EQ(read_text(file(name, content), false, "", &unread).size(), kMostSamples) << name;
    EXPECT_EQ(unread.samples, 2) << name;
    EXPECT_GE(unread.bytes, 2u) << name;
  }
  std::replace(table.begin(), table.end(), ',', '\t');
  Unread unread;
  EXPECT_EQ(read_text(file("a.tsv", table), false, "", &unread).size(), kMostSamples);
  EXPECT_EQ(read_token_ids(file("ids", ids), &unread).size(), kMostSamples);
  EXPECT_EQ(unread.samples, 4);
  EXPECT_EQ(error([&] { read_text_jsonl(file("a.jsonl", objects)); }),
            "error: the input has more than the 1048576 samples allowed here\n  in   F/a.jsonl\n  try  split "
            "-l 1048576\n");
}

// A value takes sixteen bytes and more, a cell thirty-two, and either may have two in the file.
TEST_F(Input, ALineOfTooManyValuesIsRefusedBeforeItTakesMemory) {
  constexpr size_t kValues = (1 << 24) + 1;
  std::string list;
  for (size_t i = 0; i < kValues; ++i) list += "0,";
  const auto refused = [&](const std::string& why, auto&& action) {
    EXPECT_NE(error(action).find(why), std::string::npos) << error(action);
  };
  refused("the line holds more than the 16777216 values allowed",
          [&] { read_text(file("a.jsonl", "{\"text\":\"a\",\"x\":[" + list + "0]}\n")); });
  refused("the line holds more than the 16777216 values allowed",
          [&] { read_token_ids(file("ids", "[" + list + "0]")); });
  refused("the sample has more than the 16777216 ids allowed", [&] { read_token_ids(file("ids", list)); });
  refused("the row has more than the 65536 cells allowed",
          [&] { read_text(file("a.csv", "text" + std::string(70'000, ',') + "\n"), false, "text"); });
  refused("the row has more than the 65536 cells allowed",
          [&] { read_text(file("a.tsv", "text" + std::string(70'000, '\t') + "\n"), false, "text"); });
  // Neither is it taken apart to see that it is no list of objects.
  EXPECT_EQ(read_text(file("a.txt", "[" + list + "0]\n")).size(), 1u);
}

}  // namespace
}  // namespace rankscope::test
