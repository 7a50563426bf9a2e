// rankscope tokenize, as a person runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "support/source_tree.h"

namespace rankscope::test {
namespace {

struct Result {
  std::string output;  // both streams
  int code;
};

class TokenizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RANKSCOPE_PROGRAM") == nullptr)
      GTEST_SKIP() << "RANKSCOPE_PROGRAM is not set: run with ctest";
  }
  Result run(const std::string& input, const std::string& arguments) {
    const std::string command = "printf '%s' '" + input + "' | '" + std::getenv("RANKSCOPE_PROGRAM") +
                                "' tokenize " + arguments + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    Result out{"", -1};
    std::array<char, 4096> buffer;
    while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
      out.output.append(buffer.data(), got);
    out.code = WEXITSTATUS(::pclose(pipe));
    return out;
  }
  std::string bert = "'" + (fixtures() / "tokenizers/vocab-txt").string() + "'";
};

TEST_F(TokenizeCommand, ReadsJsonLinesAndWritesIds) {
  const Result r = run(R"({"text": "[MASK]"}
{"text": "[MASK]", "text_pair": "[CLS]"})",
                       bert);
  EXPECT_EQ(r.output, "{\"ids\": [2, 4, 3]}\n{\"ids\": [2, 4, 3, 2, 3], \"types\": [0, 0, 0, 1, 1]}\n");
  EXPECT_EQ(r.code, 0);
}

TEST_F(TokenizeCommand, TakesATextAndShowsTokens) {
  EXPECT_EQ(run("", bert + " --text '[MASK]' --tokens").output,
            "{\"ids\": [2, 4, 3], \"tokens\": [\"[CLS]\",\"[MASK]\",\"[SEP]\"]}\n");
  EXPECT_EQ(run("", bert + " --text '[MASK]' --no-special").output, "{\"ids\": [4]}\n");
}

TEST_F(TokenizeCommand, SaysWhatIsWrongWithTheInput) {
  const Result r = run("{\"txt\": 1}", bert);
  EXPECT_EQ(r.output,
            "error: there is no field \"text\"\n  in   standard input, line 1\n  try  none of its fields "
            "holds a text: txt\n");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(run("", bert + " --text a --jsonl b").code, 2);
}

}  // namespace
}  // namespace rankscope::test
