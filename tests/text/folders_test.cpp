#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "text/support.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("rankscope_" + std::to_string(::getpid()) + "_" +
                                          testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  void put(const char* name, const std::string& content) { write_file(folder / name, content); }
  std::string error() {
    std::string text = error_of([&] { load_tokenizer(folder); });
    for (size_t at; (at = text.find(folder.string())) != text.npos;)
      text.replace(at, folder.string().size(), "F");
    return text;
  }
  Words files() {
    Words out;
    for (const fs::path& path : tokenizer_files(folder)) out.push_back(path.filename().string());
    return out;
  }

  const std::string bert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhéllo\nhello\n##s\n中\n";
  fs::path folder;
};

TEST_F(Folder, WithVocabTxtIsBert) {
  put("vocab.txt", bert);
  const auto t = load_tokenizer(folder);
  EXPECT_EQ(t->kind(), "WordPiece");
  EXPECT_EQ(t->encode("Héllos [MASK]").ids, (Ids{2, 6, 7, 4, 3})) << "lower case and no accents unless told";
  EXPECT_EQ(t->encode_pair("hello", "hello").types, (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(files(), (Words{"vocab.txt"}));
}

TEST_F(Folder, WithVocabTxtObeysTokenizerConfig) {
  put("vocab.txt", bert);
  put("tokenizer_config.json",
      R"({"do_lower_case": false, "tokenize_chinese_chars": false, "cls_token": {"content": "[MASK]"}})");
  EXPECT_EQ(load_tokenizer(folder)->encode("héllo Héllo 中中").ids, (Ids{4, 5, 1, 1, 3}));
  put("tokenizer_config.json", R"({"do_lower_case": true, "strip_accents": false})");
  EXPECT_EQ(load_tokenizer(folder)->encode("Héllo 中中").ids, (Ids{2, 5, 8, 8, 3}));
  EXPECT_EQ(files(), (Words{"vocab.txt", "tokenizer_config.json"}));
}

// They take the ids behind the vocabulary in the order of their own.
TEST_F(Folder, WithAddedTokensFindsThem) {
  put("vocab.txt", bert);  // 9 tokens
  put("added_tokens.json", R"({"[/E1]": 10, "[E1]": 9})");
  EXPECT_EQ(load_tokenizer(folder)->encode("[E1] hello [/E1]").ids, (Ids{2, 9, 6, 10, 3}));
  EXPECT_EQ(files(), (Words{"vocab.txt", "added_tokens.json"}));
  fs::remove(folder / "added_tokens.json");
  put("tokenizer_config.json",
      R"({"added_tokens_decoder": {"10": {"content": "[/E1]"}, "9": {"content": "[E1]", "special": true},
                                   "0": {"content": "[PAD]", "special": true}}})");
  EXPECT_EQ(load_tokenizer(folder)->encode("[E1] hello [/E1]").ids, (Ids{2, 9, 6, 10, 3}));
  put("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "[E1]"}}})");
  EXPECT_EQ(error(), "error: \"x\" is no id\n  in   F/tokenizer_config.json, added_tokens_decoder\n");
  fs::remove(folder / "tokenizer_config.json");
  put("added_tokens.json", R"({"[E1]": "9"})");
  EXPECT_EQ(error(), "error: the id of \"[E1]\" should be a whole number\n  in   F/added_tokens.json\n");
}

// DeepSeek-V3: the class puts a token first that the post-processor of tokenizer.json does not know of.
TEST_F(Folder, WithTokenizerJsonBeginsAsItsClassDoes) {
  put("tokenizer.json", read_file(fixtures() / "tokenizers/gpt2/tokenizer.json"));
  const Ids plain = load_tokenizer(folder)->encode("hello").ids;
  const auto ids = [&](const char* config) {
    put("tokenizer_config.json", config);
    return load_tokenizer(folder)->encode("hello").ids;
  };
  const Ids with = ids(
      R"({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": true, "bos_token": "<|endoftext|>"})");
  ASSERT_EQ(with.size(), plain.size() + 1);
  EXPECT_EQ(Ids(with.begin() + 1, with.end()), plain);
  EXPECT_EQ(load_tokenizer(folder)->token(with.front()), "<|endoftext|>");
  EXPECT_EQ(ids(R"({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": false})"), plain);
  EXPECT_EQ(ids(R"({"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": true})"), plain);
}

TEST_F(Folder, WithVocabTxtOfAnotherTokenizerIsRefused) {
  put("vocab.txt", bert);
  put("tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  EXPECT_EQ(error(),
            "error: the tokenizer of vocab.txt \"BertJapaneseTokenizer\" is not supported\n  in   F\n"
            "  try  the known ones are BertTokenizer, DistilBertTokenizer\n");
  put("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizerFast", "word_tokenizer_type": "mecab"})");
  EXPECT_EQ(error(),
            "error: the tokenizer is chosen by \"word_tokenizer_type\", which is not supported\n  in   F\n"
            "  try  add the model's tokenizer.json, or pass --token-ids\n");
  put("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizerFast"})");
  EXPECT_EQ(error(), "no error");
}

TEST_F(Folder, WithWindowsLineEndsReadsTheSame) {
  put("vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\nhi\r\n");
  EXPECT_EQ(load_tokenizer(folder)->encode("hi").ids, (Ids{1, 3, 2}));
}

TEST_F(Folder, WithMergesIsGpt2OrRoberta) {
  put("vocab.json", R"({"<s>": 0, "</s>": 1, "<mask>": 2, "a": 3, "b": 4, "ab": 5, "Ġ": 6})");
  put("merges.txt", "#version: 0.2\na b\n\n");
  EXPECT_EQ(load_tokenizer(folder)->encode("ab  <mask>").ids, (Ids{0, 5, 2, 1}))
      << "its vocabulary is RoBERTa's";
  EXPECT_EQ(load_tokenizer(folder)->encode_pair("a", "b").ids, (Ids{0, 3, 1, 1, 4, 1}));
  put("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(load_tokenizer(folder)->encode("ab").ids, (Ids{5}));
  put("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})");
  EXPECT_EQ(load_tokenizer(folder)->encode("ab").ids, (Ids{0, 6, 5, 1}));
  EXPECT_EQ(files(), (Words{"vocab.json", "merges.txt", "tokenizer_config.json", "config.json"}));
}

TEST_F(Folder, WithMergesOfAnotherModelIsRefused) {
  put("vocab.json", R"({"a": 0})");
  put("merges.txt", "");
  put("config.json", R"({"model_type": "qwen2"})");
  EXPECT_EQ(error(),
            "error: the tokenizer of vocab.json and merges.txt \"qwen2\" is not supported\n"
            "  in   F\n"
            "  try  the known ones are gpt2, roberta\n");
}

TEST_F(Folder, WithTokenizerJsonNeedsNothingElse) {
  put("tokenizer.json", Json{{"model", word_level({"a"})}}.dump());
  put("vocab.txt", bert);
  EXPECT_EQ(load_tokenizer(folder)->encode("a").ids, (Ids{1}));
  EXPECT_EQ(files(), (Words{"tokenizer.json"}));
}

TEST_F(Folder, WithoutATokenizerSaysSo) {
  EXPECT_EQ(error(),
            "error: there is no tokenizer here: neither tokenizer.json, nor vocab.txt, nor vocab.json with "
            "merges.txt\n"
            "  in   F\n"
            "  try  add the model's tokenizer.json, or pass --token-ids\n");
  EXPECT_EQ(files(), Words{});
}

TEST_F(Folder, WithDamagedFilesSaysWhere) {
  put("vocab.txt", "a\xFF\n");
  EXPECT_EQ(error(), "error: the file is not valid UTF-8\n  in   F/vocab.txt\n");
  put("vocab.txt", "[UNK]\n");
  EXPECT_EQ(error(), "error: the special token \"[CLS]\" is not in the vocabulary\n  in   F/vocab.txt\n");
  put("tokenizer.json", "{\"model\": ");
  EXPECT_EQ(error(), "error: this is not valid JSON\n  in   F/tokenizer.json, line 1, byte 10\n");
}

}  // namespace
}  // namespace rankscope::test
