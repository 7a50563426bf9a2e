// A file is never trusted: anything may be in it, and a text may be anything too.
#include "base/files.h"
#include "support/source_tree.h"
#include "text/support.h"

namespace rankscope::test {
namespace {

std::string error(const std::string& text) {
  return error_of([&] { tokenizer_from_text(text, "tokenizer.json"); });
}

TEST(HostileFile, IsRefusedWithAPlace) {
  EXPECT_EQ(error(""), "error: this is not valid JSON\n  in   tokenizer.json, line 1, byte 0\n");
  EXPECT_EQ(error("[]"), "error: expected a JSON object, but got array\n  in   tokenizer.json\n");
  EXPECT_EQ(error("{}"), "error: the key \"model\" is missing\n  in   tokenizer.json\n");
  EXPECT_EQ(error("{\"model\": 3}"),
            "error: expected a JSON object, but got number\n  in   tokenizer.json, model\n");
  EXPECT_EQ(error("{\"normalizer\": \"NFC\", \"model\": {}}"),
            "error: expected a JSON object, but got string\n  in   tokenizer.json, normalizer\n");
  EXPECT_EQ(error("{\"normalizer\": {\"type\": 7}}"),
            "error: \"type\" should be a string\n  in   tokenizer.json, normalizer\n");
  EXPECT_EQ(error("{\"model\": \"\xFF\"}").find("error: this is not valid JSON"), 0u);
}

TEST(HostileFile, MayNotBeDeep) {
  EXPECT_EQ(error(std::string(1 << 20, '[')),
            "error: the JSON is nested more than 64 levels deep\n  in   tokenizer.json, byte 64\n");
  EXPECT_EQ(error("{\"a\": \"" + std::string(1000, '[') + "\\\"" + std::string(1000, '[') + "\"}"),
            "error: the key \"model\" is missing\n  in   tokenizer.json\n")
      << "brackets in strings do not count";
}

TEST(HostileFile, CutAnywhereIsAnErrorOrATokenizer) {
  const std::string whole = read_file(fixtures() / "tokenizers/xlnet/tokenizer.json");
  for (size_t size = 0; size < whole.size(); size += 997)
    EXPECT_EQ(error(whole.substr(0, size)).find("error: "), 0u) << size;
}

TEST(HostileFile, WithAnyMemberOfAnotherTypeIsAnErrorOrATokenizer) {
  for (const char* name : {"bert-uncased", "llama2", "roberta", "albert"}) {
    const Json whole = read_json(fixtures() / "tokenizers" / name / "tokenizer.json");
    const Json flat = whole.flatten();
    size_t tried = 0;
    for (const auto& [path, value] : flat.items()) {
      if (path.find("/vocab/") != path.npos && tried++ % 500 != 0) continue;
      if (path.find("/merges/") != path.npos && tried++ % 500 != 0) continue;
      for (const Json& other :
           {Json(nullptr), Json(-1), Json(1e300), Json("\u0000["), Json::array({1}), Json::object()}) {
        Json changed = whole;
        changed[Json::json_pointer(path)] = other;
        const std::string text = error_of([&] { tokenizer(changed)->encode("a [MASK] \n é"); });
        EXPECT_TRUE(text == "no error" || text.find("error: ") == 0) << path;
      }
    }
  }
}

TEST(HostileText, OfInvalidUtf8IsRepaired) {
  const auto t = load_tokenizer(fixtures() / "tokenizers/gpt2");
  EXPECT_EQ(t->encode("a\xFF"
                      "b\xE2\x82")
                .ids,
            t->encode("a\uFFFDb\uFFFD").ids);
  EXPECT_EQ(t->encode("\xED\xA0\x80").ids, t->encode("\uFFFD\uFFFD\uFFFD").ids) << "a surrogate";
}

TEST(HostileText, OfAnyBytesGivesIds) {
  for (const char* name : {"bert-uncased", "gpt2", "llama2", "llama3", "albert", "xlnet"}) {
    const auto t = load_tokenizer(fixtures() / "tokenizers" / name);
    uint32_t state = 1;
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int i = 0; i < 40; ++i) text += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
      EXPECT_NO_THROW(t->encode(text)) << name;
    }
  }
}

// One word of a megabyte, one run of spaces, one run of marks: each must stay about linear.
TEST(HostileText, OfAMegabyteTakesSeconds) {
  const size_t size = 1 << 20;
  std::string marks = "e", words;
  while (marks.size() < size) marks += "\u0301";
  while (words.size() < size) words += "[MASK] <s>";
  for (const char* name :
       {"bert-uncased", "gpt2", "roberta", "llama2", "mistral-metaspace", "llama3", "albert", "xlnet"}) {
    const auto t = load_tokenizer(fixtures() / "tokenizers" / name);
    for (const std::string& text : {std::string(size, 'a'), std::string(size, ' '), std::string(size, '\n'),
                                    std::string(size, '!'), std::string(size, '1'), marks, words})
      EXPECT_NO_THROW(t->encode(text)) << name;
  }
}

TEST(HostileText, HasALimit) {
  EXPECT_EQ(error_of([] {
              tokenizer({{"model", word_level({})}})->encode(std::string((64 << 20) + 1, 'a'));
            }),
            "error: the text has 67108865 bytes, more than the 64 MiB a tokenizer takes at once\n"
            "  try  pass it in parts\n");
}

}  // namespace
}  // namespace rankscope::test
