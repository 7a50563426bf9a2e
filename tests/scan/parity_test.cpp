// The ground everything stands on: our activations against Hugging Face's, at every layer, for every
// architecture.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "checkpoint/parity_records.h"
#include "scan/verify.h"
#include "support/rounding.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

// The folders, and the towers of one that holds two.
std::vector<std::string> model_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::fixtures() / "models"))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  if (const auto clip = std::find(names.begin(), names.end(), "clip"); clip != names.end()) {
    names.erase(clip);
    for (const char* tower : {"clip/text_model", "clip/vision_model"}) names.emplace_back(tower);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<LayerError> compared(const std::string& name, const std::string& dtype) {
  const std::filesystem::path model = test::fixtures() / "models" / name;
  const std::filesystem::path folder = std::filesystem::exists(model) ? model : model.parent_path();
  const std::string file = std::string("activations") + (name.ends_with("text_model") ? "_text" : "") +
                           (dtype == "float64" ? "_f64" : "") + ".safetensors";
  return verify({model, folder / file, dtype, "cpu", 1});
}

double worst_of(const std::vector<LayerError>& errors) {
  double worst = 0;
  for (const LayerError& e : errors)
    if (!(e.relative() <= worst)) worst = e.relative();  // a NaN is the worst
  return worst;
}

class Parity : public testing::TestWithParam<std::string> {
 protected:
  const std::filesystem::path folder = test::fixtures() / "models" / GetParam();
  const ModelSpec spec = Checkpoint(folder).spec();

  void check(const char* dtype, double tolerance) {
    const std::vector<LayerError> errors = compared(GetParam(), dtype);
    // Every hidden state and every attention matrix was there to be compared.
    const auto count = [&](const std::string& prefix) {
      return std::count_if(errors.begin(), errors.end(),
                           [&](auto& e) { return e.tensor.rfind(prefix, 0) == 0; });
    };
    const std::string own = spec.sources.empty() ? "" : "decoder_";
    EXPECT_EQ(count(own + "hidden_states."), spec.depth() + 1);
    // Layers that keep a state have no matrix.
    const auto patterns = std::count_if(spec.blocks.begin(), spec.blocks.end(), [](const BlockSpec& b) {
      return b.attention_branch()->part.name != "gated_delta_attention";
    });
    EXPECT_EQ(count(own + "attentions."), patterns);
    for (const StreamSpec& source : spec.sources) {
      EXPECT_EQ(count(source.name + "_hidden_states."), source.depth() + 1);
      EXPECT_EQ(count(source.name + "_attentions."), source.depth());
      EXPECT_EQ(count("cross_attentions."), spec.depth());
    }
    EXPECT_GE(count("last_hidden_state"), spec.sources.empty() ? 1 : 0);
    for (const LayerError& e : errors) EXPECT_LE(e.relative(), tolerance) << e.tensor;
  }
};

TEST_P(Parity, Float32AgreesToRoundingOfTheLargestValue) {
  int64_t blocks = spec.depth();
  for (const StreamSpec& source : spec.sources) blocks += source.depth();
  check("float32", test::forward_error(blocks, spec.width));
}

TEST_P(Parity, Float64AgreesWithin1em10) { check("float64", 1e-10); }

// What `rankscope inspect --architectures` says of it. Instruction sets round differently, and the largest of
// some thousand errors moves by a small factor: one of 30 is another network, or another reading of it.
TEST_P(Parity, TheErrorOnRecordIsTheOneMeasured) {
  constexpr double kFactor = 30;
  const auto records = parity_records();
  const auto record =
      std::find_if(records.begin(), records.end(), [](auto& r) { return r.fixture == GetParam(); });
  ASSERT_NE(record, records.end()) << "add it to checkpoint/parity_records.cpp";
  EXPECT_EQ(record->architecture, spec.architecture);
  for (const auto& [dtype, written] : {std::pair{"float32", record->float32}, {"float64", record->float64}}) {
    const double measured = worst_of(compared(GetParam(), dtype));
    EXPECT_LT(measured, kFactor * written) << dtype;
    EXPECT_GT(measured, written / kFactor) << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryArchitecture, Parity, testing::ValuesIn(model_fixtures()),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
                           return name;
                         });

TEST(Parity, EveryArchitectureHasAFixture) {
  std::vector<std::string> seen;
  for (const std::string& name : model_fixtures())
    seen.emplace_back(Checkpoint(test::fixtures() / "models" / name).spec().architecture);
  for (const Architecture* a : architectures()) {
    if (a->name == "rankscope")
      continue;  // our own: tests/contract/trained_model_test.cpp ties it to training
    EXPECT_NE(std::find(seen.begin(), seen.end(), a->name), seen.end()) << a->name;
  }
}

TEST(Parity, BuiltInModelAgrees) {
  const auto folder = test::source_tree() / "models" / "builtin";
  const auto errors =
      verify({folder, test::fixtures() / "models" / "builtin-activations.safetensors", "float32", "cpu", 1});
  ASSERT_FALSE(errors.empty());
  const ModelSpec spec = Checkpoint(folder).spec();
  for (const LayerError& e : errors)
    EXPECT_LE(e.relative(), test::forward_error(spec.depth(), spec.width)) << e.tensor;
}

TEST(Parity, RoutersAreCompared) {
  for (const char* name : {"mixtral", "mixtral-fused", "qwen3-moe", "qwen3-next", "gpt-oss", "deepseek-v3"}) {
    const std::vector<LayerError> errors = compared(name, "float64");
    EXPECT_TRUE(std::any_of(errors.begin(), errors.end(), [](auto& e) {
      return e.tensor == "router_logits.2";
    })) << name;
  }
}

// An encoder by itself is the encoder of the whole.
TEST(Parity, TheEncoderOfTwoStreamsIsANetworkOfItsOwn) {
  for (const char* name : {"t5", "bart", "whisper"}) {
    const auto folder = test::fixtures() / "models" / name;
    const ModelSpec alone = Checkpoint(folder / "encoder").spec(), whole = Checkpoint(folder).spec();
    ASSERT_EQ(whole.sources.size(), 1u);
    EXPECT_TRUE(alone.sources.empty());
    EXPECT_EQ(alone.blocks, whole.sources.front().blocks);
    EXPECT_EQ(alone.final_norm, whole.sources.front().final_norm);
  }
}

TEST(Parity, LanguageModelHeadsAreCompared) {
  for (const char* name :
       {"bert", "roberta", "distilbert", "albert", "xlnet", "gpt2", "llama", "qwen2", "gemma2", "granite",
        "opt-narrow", "phi", "modernbert", "gpt-oss", "qwen3-next", "qwen3-5", "t5", "bart", "whisper"}) {
    const auto folder = test::fixtures() / "models" / name;
    const auto errors = verify({folder, folder / "activations.safetensors", "float32", "cpu", 1});
    EXPECT_EQ(errors.back().tensor, "logits") << name;
  }
}

}  // namespace
}  // namespace rankscope
