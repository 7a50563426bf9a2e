// The network of the experiments on paths: its gradients, its twin in the rest of the program, its training.
#include "train/token_network.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "base/philox.h"
#include "checkpoint/load.h"
#include "operator/frozen.h"
#include "support/temporary_folder.h"
#include "train/token_model.h"
#include "train/token_trainer.h"

namespace rankscope {
namespace {

using at::Tensor;

struct Case {
  const char* name;
  const char* task;
  TokenNetwork network;
};

std::vector<Case> cases() {
  return {
      {"Words", "sort", {.layers = 3, .heads = 2, .width = 12, .positions = 8, .outputs = 10}},
      {"Points", "hull", {.layers = 2, .heads = 3, .width = 12, .deep_input = true, .outputs = 2}},
      {"ShallowPointsNoSkip",
       "hull",
       {.layers = 1, .heads = 2, .width = 8, .mlp = true, .skip = false, .outputs = 2}},
      {"PaddedTextsWithMlp", "memorise", {.layers = 2, .heads = 2, .width = 10, .mlp = true, .outputs = 2}}};
}

// A network far from its start: every parameter counts.
Tensor random_parameters(const TokenNetwork& n, at::ScalarType dtype) {
  std::vector<double> values;
  const Philox random{11, 1, 0};
  for (int64_t i = 0; i < parameter_count(n); ++i)
    values.push_back(0.3 * random.normal(static_cast<uint64_t>(i)));
  return at::tensor(values, at::kDouble).to(dtype);
}

class TokenNetworks : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    data_ = token_task_named(GetParam().task)
                .make({.tokens = GetParam().task == std::string("memorise") ? 24 : 8,
                       .train = 6,
                       .test = 6,
                       .seed = 3});
    network_ = GetParam().network;
    network_.vocabulary = data_.vocabulary;
  }
  TokenData data_;
  TokenNetwork network_;
  const std::vector<int64_t> sequences_{0, 1, 2, 3, 4, 5};
};

TEST_P(TokenNetworks, GradientsAreThoseOfFiniteDifferences) {
  Tensor flat = random_parameters(network_, at::kDouble);
  const TokenBatch batch = batch_of(data_.train, sequences_, true);
  const auto loss = [&](bool gradients) {
    const TokenParameters p(network_, flat, gradients);
    const Tensor value = token_loss(token_forward(network_, p, batch), data_.train, sequences_, batch);
    return std::pair(value, p.leaves());
  };
  const auto [value, leaves] = loss(true);
  std::vector<Tensor> gradients = torch::autograd::grad({value}, leaves);
  for (Tensor& g : gradients) g = g.reshape({-1});
  const Tensor all = at::cat(gradients);
  const double h = 1e-5;
  const double scale = all.abs().max().item<double>();
  double* p = flat.data_ptr<double>();
  for (int64_t i = 0; i < flat.numel(); i += std::max<int64_t>(1, flat.numel() / 60)) {
    const double kept = p[i];
    p[i] = kept + h;
    const double above = loss(false).first.item<double>();
    p[i] = kept - h;
    const double below = loss(false).first.item<double>();
    p[i] = kept;
    // Central differences are exact to h^2 and to the rounding of the loss over h.
    EXPECT_NEAR(all[i].item<double>(), (above - below) / (2 * h), 1e-7 * scale + 1e-9) << i;
  }
}

// The frozen network is exact at its input, so its output is that of the observed pass.
TEST_P(TokenNetworks, EqualTheirTwinInTheRestOfTheProgram) {
  for (const bool float64 : {true, false}) {
    const Tensor flat = random_parameters(network_, float64 ? at::kDouble : at::kFloat);
    TokenModel model(network_, flat, data_.test);
    const Batch batch = make_batches(samples_of(data_.test), model.spec(), 6).front();
    const FrozenNetwork frozen(model.spec(), model, batch);
    const Tensor theirs = at::linear(frozen.output(), model.row_range("unembed.W_U", 0, network_.outputs),
                                     model.load("unembed").get("b_U"));
    for (int64_t s = 0; s < batch.count(); ++s) {
      const TokenBatch one = batch_of(data_.test, {batch.samples[size_t(s)]}, float64);
      const Tensor ours = token_forward(network_, TokenParameters(network_, flat, false), one);
      const Tensor slice = theirs.narrow(0, batch.offsets[size_t(s)], batch.length(s));
      EXPECT_LT((ours - slice).abs().max().item<double>(), float64 ? 1e-10 : 1e-5);
    }
  }
}

TEST_P(TokenNetworks, ASequenceIsTheSameInAnyCompany) {
  const Tensor flat = random_parameters(network_, at::kDouble);
  const TokenParameters p(network_, flat, false);
  const TokenBatch together = batch_of(data_.test, sequences_, true);
  const int64_t T = (together.ids.defined() ? together.ids : together.points).size(1);
  const Tensor all = token_forward(network_, p, together).view({6, T, -1});
  for (int64_t s = 0; s < 6; ++s) {
    const Tensor alone = token_forward(network_, p, batch_of(data_.test, {s}, true));
    EXPECT_LT((all[s].narrow(0, 0, alone.size(0)) - alone).abs().max().item<double>(), 1e-12);
  }
}

TEST_P(TokenNetworks, AreReadBackFromTheirFolder) {
  TemporaryFolder folder;
  TokenModel model(network_, random_parameters(network_, at::kFloat), data_.test);
  export_token_model(model, "test", folder.path());
  const Checkpoint checkpoint(folder.path());
  EXPECT_TRUE(checkpoint.unused().empty());
  EXPECT_TRUE(checkpoint.missing_head().empty());
  EXPECT_EQ(describe(checkpoint.spec()), describe(model.spec()));
  const auto source = checkpoint_source(checkpoint, "float32", "cpu");
  const Batch batch = make_batches(samples_of(data_.test), checkpoint.spec(), 6).front();
  EXPECT_TRUE(at::equal(FrozenNetwork(checkpoint.spec(), *source, batch).output(),
                        FrozenNetwork(model.spec(), model, batch).output()));
}

INSTANTIATE_TEST_SUITE_P(All, TokenNetworks, testing::ValuesIn(cases()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(TokenTraining, StartsAsTheSheetSays) {
  const TokenNetwork n{
      .layers = 2, .heads = 2, .width = 64, .vocabulary = 100, .positions = 10, .outputs = 5};
  const std::vector<float> flat = initial_parameters(n, 4);
  const TokenParameters p(n, at::tensor(at::ArrayRef<float>(flat.data(), flat.size()), at::kFloat), false);
  // 6400 normals have a deviation known to 1 %, a uniform law in +-1/8 has 1/(8 sqrt 3).
  EXPECT_NEAR(p.get("embed.W_E").std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(p.get("blocks.1.attn.W_O").std().item<double>(), 0.125 / std::sqrt(3.0), 0.003);
  EXPECT_LE(p.get("blocks.1.attn.W_O").abs().max().item<double>(), 0.125);
  EXPECT_EQ(p.get("blocks.1.attn.b_QKV").abs().max().item<double>(), 0);
  EXPECT_EQ(p.get("blocks.1.ln1.w").min().item<double>(), 1);
}

TEST(TokenTraining, FollowsItsSchedule) {
  TokenRecipe r{.epochs = 70, .lr = 1.0};
  EXPECT_EQ(learning_rate(r, 500, 10), 1.0);
  r.schedule = TokenRecipe::Schedule::linear;
  EXPECT_DOUBLE_EQ(learning_rate(r, 350, 10), 0.5);
  r.schedule = TokenRecipe::Schedule::steps;
  EXPECT_EQ(learning_rate(r, 149, 10), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(r, 150, 10), 0.91);
  EXPECT_DOUBLE_EQ(learning_rate(r, 699, 10), std::pow(0.91, 5));
}

TokenTraining small_training() {
  TokenTraining t;
  t.network = {.layers = 2, .heads = 2, .width = 24, .vocabulary = 10, .positions = 4, .outputs = 10};
  t.recipe = {.tokens = 4, .train = 300, .epochs = 25, .batch = 30, .lr = 3e-3, .shuffle = true};
  t.init_seed = 1;
  t.data_seed = 2;
  return t;
}

TEST(TokenTraining, LearnsToSortFourLetters) {
  const TokenTraining t = small_training();
  const TokenData data = token_task_named("sort").make({.tokens = 4, .train = 300, .test = 100, .seed = 2});
  TemporaryFolder folder;
  const auto trained = train_tokens(t, data.train, {.folder = folder.path()});
  ASSERT_TRUE(trained);
  const Tensor flat =
      at::tensor(at::ArrayRef<float>(trained->parameters.data(), trained->parameters.size()), at::kFloat);
  std::vector<int64_t> all(100);
  for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
  const Tensor answers =
      token_forward(t.network, TokenParameters(t.network, flat, false), batch_of(data.test, all));
  const double accuracy =
      (answers.argmax(-1) == at::tensor(data.test.labels, at::kLong)).to(at::kDouble).mean().item<double>();
  EXPECT_GT(accuracy, 0.5);  // chance is 0.1
}

TEST(TokenTraining, StoppedAndContinuedIsTheSame) {
  TokenTraining t = small_training();
  t.recipe.epochs = 2;
  const TokenData data = token_task_named("sort").make({.tokens = 4, .train = 300, .test = 1, .seed = 2});
  TemporaryFolder whole, parts;
  const auto once = train_tokens(t, data.train, {.folder = whole.path()});
  std::atomic<bool> stop{false};
  TokenTrainOptions options{.folder = parts.path(), .stop = &stop};
  options.progress = [&](int64_t step, double) { stop = step == 13; };
  EXPECT_FALSE(train_tokens(t, data.train, options));
  EXPECT_TRUE(std::filesystem::exists(parts.path() / "checkpoint.safetensors"));
  stop = false;
  const auto twice = train_tokens(t, data.train, options);
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(once->parameters, twice->parameters);
  EXPECT_EQ(once->loss, twice->loss);
  EXPECT_EQ(twice->steps, 20);
  EXPECT_FALSE(std::filesystem::exists(parts.path() / "checkpoint.safetensors"));
  // And a third time it is read.
  EXPECT_EQ(train_tokens(t, data.train, options)->parameters, once->parameters);
}

}  // namespace
}  // namespace rankscope
