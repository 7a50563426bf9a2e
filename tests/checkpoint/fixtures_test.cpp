// Folders saved by the library itself (tests/fixtures/models): each opens, and leaves unused what no pass
// here needs.
#include <algorithm>

#include "base/test_support.h"
#include "checkpoint/checkpoint.h"

namespace rankscope {
namespace {

struct Saved {
  const char* folder;
  const char* architecture;
  HeadKind head;
  bool tied;
  std::vector<std::string> unused = {};
};

const Saved kSaved[] = {
    {"albert", "albert", HeadKind::transformed, true},
    {"albert-groups", "albert", HeadKind::transformed, true},
    {"bert", "bert", HeadKind::transformed, true},
    {"bert-base-noprefix", "bert", HeadKind::none, false, {"pooler.dense.bias", "pooler.dense.weight"}},
    {"bert-classifier",
     "bert",
     HeadKind::none,
     false,
     {"bert.pooler.dense.bias", "bert.pooler.dense.weight", "classifier.bias", "classifier.weight"}},
    {"distilbert", "distilbert", HeadKind::transformed, true},
    {"gpt2", "gpt2", HeadKind::linear, true},
    {"gpt2-fp16", "gpt2", HeadKind::linear, true},
    {"llama", "llama", HeadKind::linear, false},
    {"llama-linear", "llama", HeadKind::linear, false},
    {"llama-rope3", "llama", HeadKind::linear, true},
    {"mistral", "llama", HeadKind::linear, false},
    {"qwen2", "llama", HeadKind::linear, true},
    {"roberta", "roberta", HeadKind::transformed, true},
    {"vit", "vit", HeadKind::none, false, {"pooler.dense.bias", "pooler.dense.weight"}},
    {"vit-classifier", "vit", HeadKind::none, false, {"classifier.bias", "classifier.weight"}},
    {"xlnet", "xlnet", HeadKind::linear, true, {"transformer.mask_emb"}},
};

class SavedFolder : public testing::TestWithParam<Saved> {};

TEST_P(SavedFolder, OpensAndUsesWhatItShould) {
  const Saved& saved = GetParam();
  const Checkpoint checkpoint(test::source_tree() / "tests/fixtures/models" / saved.folder);
  EXPECT_EQ(checkpoint.spec().architecture, saved.architecture);
  EXPECT_EQ(checkpoint.spec().output.kind, saved.head);
  EXPECT_EQ(checkpoint.spec().output.tied, saved.tied);
  EXPECT_EQ(checkpoint.unused(), saved.unused);
  EXPECT_TRUE(checkpoint.missing_head().empty());
}

std::string test_name(const testing::TestParamInfo<Saved>& saved) {
  std::string name = saved.param.folder;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Library, SavedFolder, testing::ValuesIn(kSaved), test_name);

TEST(SavedFolders, AreAllTested) {
  size_t folders = 0;
  for (const auto& item : std::filesystem::directory_iterator(test::source_tree() / "tests/fixtures/models"))
    folders += std::filesystem::exists(item.path() / "config.json");
  EXPECT_EQ(folders, std::size(kSaved));
}

TEST(SavedFolders, BuiltInModelUsesEveryTensor) {
  const Checkpoint checkpoint(test::source_tree() / "models/builtin");
  EXPECT_EQ(checkpoint.spec().architecture, "gpt2");
  EXPECT_TRUE(checkpoint.unused().empty());
}

}  // namespace
}  // namespace rankscope
