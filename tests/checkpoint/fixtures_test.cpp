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
    {"bart", "bart", HeadKind::linear, true},
    {"bloom-after", "bloom", HeadKind::linear, true},
    {"bloom", "bloom", HeadKind::linear, true},
    {"clip-text", "clip_text", HeadKind::none, false, {"text_projection.weight"}},
    {"clip-vision",
     "clip_vision",
     HeadKind::none,
     false,
     {"vision_model.post_layernorm.bias", "vision_model.post_layernorm.weight", "visual_projection.weight"}},
    {"deepseek-v3-plain", "deepseek", HeadKind::linear, false},
    {"deepseek-v3", "deepseek", HeadKind::linear, false},
    {"deit-teacher",
     "vit",
     HeadKind::none,
     false,
     {"cls_classifier.bias", "cls_classifier.weight", "distillation_classifier.bias",
      "distillation_classifier.weight"}},
    {"deit", "vit", HeadKind::none, false, {"pooler.dense.bias", "pooler.dense.weight"}},
    {"dinov2-classifier",
     "dinov2",
     HeadKind::none,
     false,
     {"classifier.bias", "classifier.weight", "dinov2.embeddings.mask_token"}},
    {"dinov2-registers", "dinov2", HeadKind::none, false, {"embeddings.mask_token"}},
    {"dinov2", "dinov2", HeadKind::none, false, {"embeddings.mask_token"}},
    {"falcon-alibi", "falcon", HeadKind::linear, true},
    {"falcon-new-one-norm", "falcon", HeadKind::linear, false},
    {"falcon-new", "falcon", HeadKind::linear, true},
    {"falcon", "falcon", HeadKind::linear, true},
    {"gemma2", "gemma", HeadKind::linear, true},
    {"gemma3", "gemma", HeadKind::linear, true},
    {"gpt-neox-serial", "gpt_neox", HeadKind::linear, false},
    {"gpt-neox", "gpt_neox", HeadKind::linear, false},
    {"gpt-oss", "gpt_oss", HeadKind::linear, false},
    {"granite", "granite", HeadKind::linear, true},
    {"llama-dynamic", "llama", HeadKind::linear, false},
    {"llama-yarn-old", "llama", HeadKind::linear, false},
    {"llama-yarn", "llama", HeadKind::linear, false},
    {"mixtral-fused", "mixtral", HeadKind::linear, false},
    {"mixtral", "mixtral", HeadKind::linear, false},
    {"modernbert-bias", "modernbert", HeadKind::transformed, true},
    {"modernbert", "modernbert", HeadKind::transformed, true},
    {"olmo2", "olmo", HeadKind::linear, false},
    {"opt-after", "opt", HeadKind::transformed, true},
    {"opt-narrow", "opt", HeadKind::transformed, true},
    {"opt", "opt", HeadKind::linear, true},
    {"phi-plain", "phi", HeadKind::linear, false},
    {"phi", "phi", HeadKind::linear, false},
    {"phi3-short", "phi3", HeadKind::linear, false},
    {"phi3-long", "phi3", HeadKind::linear, false},
    {"gemma3-old", "gemma", HeadKind::linear, true},
    {"olmo3", "olmo", HeadKind::linear, false},
    {"olmo3-old", "olmo", HeadKind::linear, false},
    {"phi3", "phi3", HeadKind::linear, false},
    {"qwen3-moe", "mixtral", HeadKind::linear, false},
    {"qwen3", "qwen3", HeadKind::linear, true},
    {"qwen3-next", "qwen3_next", HeadKind::linear, false},
    {"qwen3-5", "qwen3_next", HeadKind::linear, true},
    {"smollm3", "smollm3", HeadKind::linear, true},
    {"stablelm-parallel", "stablelm", HeadKind::linear, false},
    {"stablelm", "stablelm", HeadKind::linear, false},
    {"t5-gated", "t5", HeadKind::linear, true},
    {"t5", "t5", HeadKind::linear, true},
    {"whisper", "whisper", HeadKind::linear, true},
    {"bert-untied", "bert", HeadKind::transformed, false, {"cls.predictions.bias"}},
    {"bart-untied", "bart", HeadKind::linear, false, {"model.shared.weight"}},
    {"gemma3-both-ways", "gemma", HeadKind::none, false},
    {"gemma3-cap", "gemma", HeadKind::linear, true},
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

TEST(SavedFolders, TwoNetworksInOneAreOpenedOneByOne) {
  const auto folder = test::source_tree() / "tests/fixtures/models/clip";
  EXPECT_THROW(Checkpoint{folder}, Error);
  EXPECT_EQ(Checkpoint(folder / "text_model").spec().architecture, "clip_text");
  EXPECT_EQ(Checkpoint(folder / "vision_model").spec().architecture, "clip_vision");
}

TEST(SavedFolders, AreAllTested) {
  size_t folders = 0;
  for (const auto& item : std::filesystem::directory_iterator(test::source_tree() / "tests/fixtures/models"))
    folders += std::filesystem::exists(item.path() / "config.json") && item.path().filename() != "clip";
  EXPECT_EQ(folders, std::size(kSaved));
}

TEST(SavedFolders, BuiltInModelUsesEveryTensor) {
  const Checkpoint checkpoint(test::source_tree() / "models/builtin");
  EXPECT_EQ(checkpoint.spec().architecture, "gpt2");
  EXPECT_TRUE(checkpoint.unused().empty());
}

}  // namespace
}  // namespace rankscope
