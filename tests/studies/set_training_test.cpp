// Networks that train on labelled sets: their gradients, their twin in the rest of the program, their
// training.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "base/philox.h"
#include "checkpoint/load.h"
#include "kernels/cuda/train.h"
#include "operator/frozen.h"
#include "studies/support/token_config.h"
#include "support/rounding.h"
#include "support/temporary_folder.h"
#include "train/export.h"
#include "train/losses.h"
#include "train/plain_stack.h"

namespace rankscope {
namespace {

using at::Tensor;

struct Case {
  const char* name;
  const char* task;
  TokenRecipe recipe;
  bool skip = true;
};

std::vector<Case> cases() {
  return {
      {"Words", "sort", {.layers = 3, .heads = 2, .width = 12, .positions = true, .tokens = 8}},
      {"Points", "hull", {.layers = 2, .heads = 3, .width = 12, .deep_input = true, .tokens = 8}},
      {"ShallowPointsNoSkip", "hull", {.layers = 1, .heads = 2, .width = 8, .mlp = true, .tokens = 8}, false},
      {"TextsOfManyLengthsWithMlp",
       "memorise",
       {.layers = 2, .heads = 2, .width = 10, .mlp = true, .tokens = 24}}};
}

class LabelledSets : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const TokenRecipe& r = GetParam().recipe;
    data_ = token_task_named(GetParam().task).make({.tokens = r.tokens, .train = 6, .test = 6, .seed = 3});
    trial_.network = token_network(r, data_.vocabulary, data_.classes, GetParam().skip);
    // A network far from its start: every parameter counts.
    const Philox random{11, 1, 0};
    for (int64_t i = 0; i < parameter_count(trial_.network); ++i)
      parameters_.push_back(static_cast<float>(0.3 * random.normal(static_cast<uint64_t>(i))));
  }
  Tensor flat() const { return tensor_of(parameters_).to(at::kDouble); }
  static TaskBatch in_double(const TokenSet& set, const std::vector<int64_t>& sequences) {
    TaskBatch b = batch_of(set, sequences);
    if (b.tokens.defined()) b.tokens = b.tokens.to(at::kDouble);
    return b;
  }
  Tensor answers(const Tensor& flat, const TaskBatch& batch, bool gradients = false) const {
    return plain_forward(trial_.network, ParameterViews(Layout(trial_.network), flat, gradients, false),
                         batch);
  }
  TokenData data_;
  TrialSpec trial_;
  std::vector<float> parameters_;
  const std::vector<int64_t> sequences_{0, 1, 2, 3, 4, 5};
};

TEST_P(LabelledSets, GradientsAreThoseOfFiniteDifferences) {
  Tensor flat = this->flat();
  const TaskBatch batch = in_double(data_.train, sequences_);
  const ParameterViews views(Layout(trial_.network), flat, true, false);
  std::vector<Tensor> gradients = torch::autograd::grad(
      {loss_of(plain_forward(trial_.network, views, batch), batch, 0.1)}, views.leaves());
  for (Tensor& g : gradients) g = g.reshape({-1});
  const Tensor all = at::cat(gradients);
  const double h = 1e-5, scale = all.abs().max().item<double>();
  double* p = flat.data_ptr<double>();
  const auto loss = [&] { return loss_of(answers(flat, batch), batch, 0.1).item<double>(); };
  for (int64_t i = 0; i < flat.numel(); i += std::max<int64_t>(1, flat.numel() / 60)) {
    const double kept = p[i];
    p[i] = kept + h;
    const double above = loss();
    p[i] = kept - h;
    const double below = loss();
    p[i] = kept;
    // Central differences are exact to h^2 and to the rounding of the loss over h.
    EXPECT_NEAR(all[i].item<double>(), (above - below) / (2 * h), 1e-7 * scale + 1e-9) << i;
  }
}

// The frozen network is exact at its input, so its output is that of the observed pass.
TEST_P(LabelledSets, EqualTheirTwinInTheRestOfTheProgram) {
  TrainedModel model(trial_, parameters_, &data_.test);
  const Batch batch = make_batches(samples_of(data_.test), model.spec(), 6).front();
  const FrozenNetwork frozen(model.spec(), model, batch);
  const Tensor theirs = at::linear(frozen.output(), model.row_range("unembed.W_U", 0, data_.classes),
                                   model.load("unembed").get("b_U"));
  for (int64_t s = 0; s < batch.count(); ++s) {
    const Tensor ours = answers(flat(), in_double(data_.test, {batch.samples[size_t(s)]}));
    const Tensor slice = theirs.narrow(0, batch.offsets[size_t(s)], batch.length(s));
    // Points reach training as floats; the norms let through no more than their share of it.
    const double rounding =
        data_.vocabulary > 0 ? 1e-10 : test::kFloatRounding * slice.abs().max().item<double>();
    EXPECT_LT((ours - slice).abs().max().item<double>(), rounding);
  }
}

TEST_P(LabelledSets, ASequenceIsTheSameInAnyCompany) {
  const Tensor all = answers(flat(), in_double(data_.test, sequences_));
  int64_t first = 0;
  for (const int64_t s : sequences_) {
    const Tensor alone = answers(flat(), in_double(data_.test, {s}));
    EXPECT_LT((all.narrow(0, first, alone.size(0)) - alone).abs().max().item<double>(), 1e-12);
    first += alone.size(0);
  }
  EXPECT_EQ(first, all.size(0));
}

TEST_P(LabelledSets, AreReadBackFromTheirFolder) {
  TemporaryFolder folder;
  TrainedModel model(trial_, parameters_, &data_.test);
  model.write("test", folder.path());
  const Checkpoint checkpoint(folder.path());
  EXPECT_TRUE(checkpoint.unused().empty());
  EXPECT_TRUE(checkpoint.missing_head().empty());
  EXPECT_EQ(checkpoint.spec(), model.spec());
  const auto source = checkpoint_source(checkpoint, "float64", "cpu");
  const Batch batch = make_batches(samples_of(data_.test), checkpoint.spec(), 6).front();
  const Tensor read = FrozenNetwork(checkpoint.spec(), *source, batch).output(),
               made = FrozenNetwork(model.spec(), model, batch).output();
  // The folder holds floats: the folded tables are rounded, and the norms let no more of it through.
  EXPECT_LT((read - made).abs().max().item<double>(), test::kFloatRounding * made.abs().max().item<double>());
}

INSTANTIATE_TEST_SUITE_P(All, LabelledSets, testing::ValuesIn(cases()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(SetTraining, StartsAsTheSheetSays) {
  const ModelSpec n =
      token_network({.layers = 2, .heads = 2, .width = 64, .positions = true, .tokens = 10}, 100, 5);
  const ParameterViews p(Layout(n), tensor_of(initial_parameters(n, 4)), false, false);
  // 6400 normals have a deviation known to 1 %, a uniform law in +-1/8 has 1/(8 sqrt 3).
  EXPECT_NEAR(p.get("embed.W_E").std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(p.get("blocks.1.attn.W_O").std().item<double>(), 0.125 / std::sqrt(3.0), 0.003);
  EXPECT_LE(p.get("blocks.1.attn.W_O").abs().max().item<double>(), 0.125);
  EXPECT_EQ(p.get("blocks.1.attn.b_Q").abs().max().item<double>(), 0);
  EXPECT_EQ(p.get("blocks.1.ln1.w").min().item<double>(), 1);
}

TrialSpec sorting(int64_t epochs) {
  const TokenRecipe r{.layers = 2,
                      .heads = 2,
                      .width = 24,
                      .positions = true,
                      .tokens = 4,
                      .train = 300,
                      .epochs = epochs,
                      .batch = 30,
                      .lr = 3e-3,
                      .shuffle = true};
  const TokenData data = token_task_named("sort").make({.tokens = 4, .train = 300, .test = 100, .seed = 2});
  TrialSpec t;
  t.network = token_network(r, data.vocabulary, data.classes);
  t.set = std::make_shared<TokenSet>(data.train);
  t.protocol = protocol_of(r, 300);
  t.init_seed = 1;
  t.data_seed = 2;
  return t;
}

std::optional<TrainOutcome> run(const TrialSpec& t, const std::filesystem::path& folder,
                                int64_t stop_at = 0) {
  std::optional<TrainOutcome> out;
  std::atomic<bool> stop{false};
  TrainOptions options{.stack = {.device = "cpu", .threads = 2}, .stop = &stop};
  options.progress = [&](int64_t steps, int64_t, double) { stop = stop_at > 0 && steps >= stop_at; };
  options.finished = [&](size_t, const TrainOutcome& o) { out = o; };
  train({{t, folder}}, options);
  return out;
}

TEST(SetTraining, LearnsToSortFourLetters) {
  const TrialSpec t = sorting(25);
  TemporaryFolder folder;
  const auto trained = run(t, folder.path());
  ASSERT_TRUE(trained);
  const TokenSet test = token_task_named("sort").make({.tokens = 4, .train = 1, .test = 100, .seed = 2}).test;
  std::vector<int64_t> all(100);
  for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
  const TaskBatch batch = batch_of(test, all);
  const Tensor answers = plain_forward(
      t.network, ParameterViews(Layout(t.network), tensor_of(trained->parameters), false, false), batch);
  EXPECT_GT((answers.argmax(-1) == batch.labels).to(at::kDouble).mean().item<double>(),
            0.5);  // chance is 0.1
}

TEST(SetTraining, StoppedAndContinuedIsTheSame) {
  const TrialSpec t = sorting(4);
  TemporaryFolder whole, parts;
  const auto once = run(t, whole.path());
  auto again = run(t, parts.path(), 5);
  EXPECT_FALSE(again);
  EXPECT_TRUE(std::filesystem::exists(parts.path() / "checkpoint.safetensors"));
  again = run(t, parts.path());
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->parameters, again->parameters);
  EXPECT_EQ(once->record.last_loss, again->record.last_loss);
  EXPECT_EQ(again->step, 40);
  EXPECT_FALSE(std::filesystem::exists(parts.path() / "checkpoint.safetensors"));
  const auto read = load_finished(parts.path() / "model.safetensors", t);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->parameters, once->parameters);
  EXPECT_EQ(read->record.last_loss, once->record.last_loss);
}

// Whole batches instead of tiles: the same sums in another order.
TEST(SetTraining, IsTheSameOnTheStackThatTakesEverything) {
  for (const std::string device : {"cpu", "cuda"}) {
    if (device == "cuda" && !(at::hasCUDA() && cuda::available())) continue;
    const TrialSpec t = sorting(2);
    const auto plain = make_plain_stack({t}, {fresh_state(t)}, {.device = device});
    expect_close(losses({t}, "cpu", 0, 12), losses_of(*plain, 1, 0, 12), allowed(t, 12, kFloat));
  }
}

// A short last batch of an epoch is trained on whole, and weighs its labels alone.
TEST(SetTraining, AnEpochMayEndInAShortBatch) {
  TrialSpec t = sorting(1);
  t.protocol.batch = 70;
  t.protocol.window = t.protocol.steps = 5;
  const auto data = data_of(t);
  int64_t sequences = 0;
  for (int64_t step = 0; step < 5; ++step) {
    data->begin_step(step);
    sequences += data->batch(step);
    EXPECT_DOUBLE_EQ(data->weight(step), 1.0 / (4.0 * double(data->batch(step))));
  }
  EXPECT_EQ(sequences, 300);
  EXPECT_EQ(data->batch(4), 20);
}

}  // namespace
}  // namespace rankscope
