// What training computes is what a scan of the exported folder computes: every task, norm, place and kind of
// positions.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "checkpoint/load.h"
#include "model/batch.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "studies/config.h"
#include "studies/support/train_config.h"
#include "support/temporary_folder.h"
#include "tensors/norm.h"
#include "train/export.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

// The answers [sequences * tokens, ..] of the exported model, read from disk like any checkpoint: its readout
// where it has one, the stream otherwise.
at::Tensor observed(const std::filesystem::path& folder, int64_t sequences, int64_t tokens) {
  const Checkpoint checkpoint(folder);
  const auto source = checkpoint_source(checkpoint, "float64", "cpu");
  const ModelSpec& spec = checkpoint.spec();
  std::vector<Sample> samples(static_cast<size_t>(sequences));
  for (int64_t i = 0; i < sequences * tokens; ++i) samples[static_cast<size_t>(i / tokens)].ids.push_back(i);
  const Batch batch = make_batches(samples, spec, sequences).front();
  BlockObserver nobody;
  at::Tensor x = embed(batch, spec, source->load("embed"), *source);
  for (int64_t l = 0; l < spec.depth(); ++l)
    x = run_block(x, spec.blocks[size_t(l)], source->load("blocks." + std::to_string(l)), batch, nobody);
  x = apply_norm(x, spec.final_norm, source->load("ln_final"), "");
  if (spec.output.kind == HeadKind::none) return x;
  return at::linear(x, source->row_range("unembed.W_U", 0, spec.output.vocabulary),
                    source->load("unembed").get_or_none("b_U"));
}

struct ExportCase {
  std::string task, model, norm, place, positions;
  int64_t embed = 0;
};

std::string name_of(const ExportCase& c) {
  std::string name = c.task + "_" + c.model + "_" + c.norm + "_" + c.place + "_" + c.positions;
  if (c.embed > 0) name += "_embedded";
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Every combination that the keys of the training runner allow.
std::vector<ExportCase> export_cases() {
  std::vector<ExportCase> out;
  for (const Task* task : tasks())
    for (const char* norm : {"none", "unit", "layer", "rms"})
      for (const char* place : {"post", "pre"})
        for (const char* positions : {"none", "additive", "concatenated"}) {
          const bool layer = task->queries == "separate";
          if (layer && (std::string(norm) != "unit" || std::string(place) != "post" ||
                        std::string(positions) == "additive"))
            continue;
          const int64_t embed = task->last_token ? 12 : 0;
          if (embed > 0 && std::string(positions) == "concatenated") continue;
          out.push_back(
              {std::string(task->name), layer ? "layer" : "encoder", norm, place, positions, embed});
          if (!layer && embed == 0 && std::string(positions) != "concatenated")
            out.push_back({std::string(task->name), "encoder", norm, place, positions, 12});
        }
  return out;
}

class ExportedModel : public testing::TestWithParam<ExportCase> {};

TEST_P(ExportedModel, ScansAsItWasTrained) {
  const ExportCase& c = GetParam();
  const bool two = c.task == "square-wave" || c.task == "biased";  // functions of two points
  const Config config = complete(train_keys(),
                                 {{"task", c.task},
                                  {"model", c.model},
                                  {"d", int64_t{6}},
                                  {"n", int64_t{two ? 2 : 5}},
                                  {"queries", int64_t{c.model == "layer" ? 1 : 0}},
                                  {"layers", int64_t{c.model == "layer" ? 1 : 2}},
                                  {"width", int64_t{c.model == "layer" ? 1 : 3}},
                                  {"heads", int64_t{2}},
                                  {"rank", int64_t{3}},
                                  {"mlp", int64_t{c.model == "layer" ? 0 : 10}},
                                  {"norm", c.norm},
                                  {"norm_place", c.place},
                                  {"positions", c.positions},
                                  {"position_dim", int64_t{4}},
                                  {"embed", c.embed}},
                                 "test");
  const TrialSpec t = trial_of(config);
  check(t);
  // Not the starting point, where biases are zero and gains one: no term can hide.
  std::vector<float> parameters = starting_parameters(t);
  const Philox random{3, 1, 0};
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] += static_cast<float>(0.1 * random.normal(i));
  TemporaryFolder folder;
  TrainedModel(t, parameters).write("test", folder.path());

  const int64_t sequences = 4, tokens = tokens_of(t);
  TaskBatch batch = task_named(t.task.name).sample(t.task, *cpu_draw(kTestSeed, 0, 0, sequences));
  TaskBatch ask;  // every token asks: what the exported model does
  ask.tokens = batch.tokens.to(at::kDouble);
  ModelSpec network = t.network;
  network.output.last_token = false;
  const ParameterViews views(Layout(network), tensor_of(parameters).to(at::kDouble), false, false);
  const at::Tensor trained = plain_forward(network, views, ask);
  const at::Tensor scanned = observed(folder.path(), sequences, tokens).narrow(1, 0, trained.size(-1));
  // The folder holds floats: 2^-24 of every weight, table and point, through two blocks of two parts each.
  EXPECT_LT((trained - scanned).abs().max().item<double>(),
            16 * std::ldexp(1.0, -24) * 20 * (1 + trained.abs().max().item<double>()));
}

INSTANTIATE_TEST_SUITE_P(Every, ExportedModel, testing::ValuesIn(export_cases()),
                         [](const auto& c) { return name_of(c.param); });

}  // namespace
}  // namespace rankscope
