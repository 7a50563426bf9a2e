// One spec, two executors: what training computes is what the observed pass of a scan computes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "checkpoint/load.h"
#include "model/batch.h"
#include "model/block.h"
#include "model/ends.h"
#include "model/norm.h"
#include "support/temporary_folder.h"
#include "train/cpu_stack.h"
#include "train/export.h"
#include "train/forward.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

// The last residual stream [sequences * tokens, width] of the exported model, read from disk like any
// checkpoint.
at::Tensor observed(const std::filesystem::path& folder, int64_t sequences, int64_t tokens) {
  const Checkpoint checkpoint(folder);
  const auto source = checkpoint_source(checkpoint, "float32", "cpu");
  const ModelSpec& spec = checkpoint.spec();
  std::vector<Sample> samples;
  for (int64_t s = 0; s < sequences; ++s) {
    Sample sample;
    for (int64_t i = 0; i < tokens; ++i) sample.ids.push_back(s * tokens + i);
    sample.special.assign(static_cast<size_t>(tokens), false);
    samples.push_back(sample);
  }
  const Batch batch = make_batches(samples, spec, sequences).front();
  BlockObserver nobody;
  at::Tensor x = embed(batch, spec, source->load("embed"), *source);
  for (int64_t l = 0; l < spec.depth(); ++l)
    x = run_block(x, spec.blocks[size_t(l)], source->load("blocks." + std::to_string(l)), batch, nobody);
  return apply_norm(x, spec.final_norm, source->load("ln_final"), "");
}

void expect_the_same(TrialSpec t, const char* what) {
  TemporaryFolder folder;
  const std::vector<float> parameters = starting_parameters(t);
  export_model(t, parameters, folder.path());
  const int64_t sequences = 6, tokens = t.network.tokens;
  TaskBatch batch = task_named(t.task.name).sample(t.task, *cpu_draw(kTestSeed, 0, 0, sequences));
  const at::Tensor flat = at::tensor(at::ArrayRef<float>(parameters.data(), parameters.size()), at::kFloat);
  const Layout layout(t.network);
  const at::Tensor trained = forward({&t.network}, ParameterViews(layout, flat, false), batch);
  const at::Tensor scanned = observed(folder.path(), sequences, tokens).narrow(1, 0, t.network.answer_width);
  EXPECT_LT((trained.flatten(0, 1) - scanned).abs().max().item<double>(), 2e-5) << what;
}

TEST(TrainedModel, ScansAsItWasTrained) {
  expect_the_same(small_encoder(), "unit norm, W = 3");
  TrialSpec t = small_encoder(4);
  t.network.norm = NormKind::layer;
  t.network.place = NormPlace::pre;
  expect_the_same(t, "pre-norm");
  t = small_encoder();
  t.network.positions = Positions::additive;
  expect_the_same(t, "added positions");
  t.network.positions = Positions::concatenated;
  t.network.position_width = 4;
  expect_the_same(t, "concatenated positions");
  t = small_encoder();
  t.network.hard = true;
  t.network.mlp = 0;
  expect_the_same(t, "hard, no MLP");
  t = small_layer(8, 5, 4, 2);
  t.task = {.name = "farthest", .d = 8, .n = 5};
  expect_the_same(t, "one layer");
}

}  // namespace
}  // namespace rankscope
