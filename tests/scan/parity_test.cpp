// The ground everything stands on: our activations against Hugging Face's, at every layer, for every
// architecture.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "scan/verify.h"
#include "support/rounding.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

std::vector<std::string> model_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::fixtures() / "models"))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Parity : public testing::TestWithParam<std::string> {
 protected:
  const std::filesystem::path folder = test::fixtures() / "models" / GetParam();
  const ModelSpec spec = Checkpoint(folder).spec();

  void check(const char* file, const char* dtype, double tolerance) {
    const std::vector<LayerError> errors = verify({folder, folder / file, dtype, "cpu", 1});
    // Every hidden state and every attention matrix was there to be compared.
    const auto count = [&](const char* prefix) {
      return std::count_if(errors.begin(), errors.end(),
                           [&](auto& e) { return e.tensor.rfind(prefix, 0) == 0; });
    };
    EXPECT_EQ(count("hidden_states."), spec.depth() + 1);
    EXPECT_EQ(count("attentions."), spec.depth());
    EXPECT_EQ(count("last_hidden_state"), 1);
    for (const LayerError& e : errors) EXPECT_LE(e.relative(), tolerance) << e.tensor;
  }
};

TEST_P(Parity, Float32AgreesToRoundingOfTheLargestValue) {
  check("activations.safetensors", "float32", test::forward_error(spec.depth(), spec.width));
}

TEST_P(Parity, Float64AgreesWithin1em10) { check("activations_f64.safetensors", "float64", 1e-10); }

INSTANTIATE_TEST_SUITE_P(EveryArchitecture, Parity, testing::ValuesIn(model_fixtures()),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::replace(name.begin(), name.end(), '-', '_');
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

TEST(Parity, LanguageModelHeadsAreCompared) {
  for (const char* name : {"bert", "roberta", "distilbert", "albert", "xlnet", "gpt2", "llama", "qwen2"}) {
    const auto folder = test::fixtures() / "models" / name;
    const auto errors = verify({folder, folder / "activations.safetensors", "float32", "cpu", 1});
    EXPECT_EQ(errors.back().tensor, "logits") << name;
  }
}

}  // namespace
}  // namespace rankscope
