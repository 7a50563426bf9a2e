// Trains a small self-attention network on a task of labelled tokens and asks what its paths of each length
// know. Semantics, reading and length of the paths are how a trial looks at its network.
#include "studies/support/path_accuracy.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "parts/parameters.h"
#include "studies/support/shared_training.h"
#include "studies/support/token_config.h"
#include "tensors/torch_compat.h"
#include "train/export.h"

namespace rankscope {
namespace {

constexpr const char* kPathAccuracy = "path_accuracy";
const std::vector<std::string> kPathView{"semantics", "reading", "length", "draws"};

std::vector<Key> path_accuracy_keys() {
  std::vector<Key> all = token_keys();
  all.push_back({"semantics",
                 std::string("frozen"),
                 "what a path is: a term of the frozen network, or the network run again",
                 0,
                 0,
                 {"frozen", "rerun", "subpaths"}});
  all.push_back(
      {"reading", std::string("only"), "frozen: only, upto, allbut; otherwise paths a draw, or all"});
  all.push_back({"length", int64_t{0}, "attention layers a path goes through", 0, 64});
  all.push_back({"draws", int64_t{5}, "of paths, for semantics that draw them", 1, 1e6});
  return all;
}

void check_path_accuracy(const Config& c) {
  const TokenTrial t = token_trial_of(c);
  check_reading(semantics_of(text(c, "semantics")), text(c, "reading"));
  token_network(t.recipe, 1, 2);  // refuses heads that do not divide the width
  if (!t.data.text.empty() && t.task->name != "memorise")
    throw usage_error(fmt::format("the task {} reads no text", t.task->name)).hint("task=memorise");
  if (!t.data.text.empty() && !std::filesystem::exists(t.data.text))
    throw usage_error("there is no such file or folder").in("text=" + t.data.text);
  if (integer(c, "length") > t.recipe.layers)
    throw usage_error(
        fmt::format("a network of {} layers has no path of length {}", t.recipe.layers, integer(c, "length")))
        .hint("a shorter length, or more layers");
}

Config path_accuracy_network(const Config& c) { return without_view(c, path_accuracy_keys(), kPathView); }

PathDraws draws_of(const Config& c, const TokenTrial& t) {
  return {integer(c, "draws"), t.reference, t.draw_seed};
}

double shared_path_accuracy_flops(const Config& c) {
  const TokenTrial t = token_trial_of(c);
  // Without the data: what it costs hardly depends on the vocabulary.
  return 3.0 * forward_flops(token_network(t.recipe, 1, 2), t.recipe.tokens) *
         static_cast<double>(t.recipe.epochs * t.recipe.train);
}

double path_accuracy_flops(const Config& c) {
  const TokenTrial t = token_trial_of(c);
  const double heads = heads_run(semantics_of(text(c, "semantics")), text(c, "reading"), integer(c, "length"),
                                 t.recipe.layers, t.recipe.heads, draws_of(c, t));
  ModelSpec network = token_network(t.recipe, 1, 2);
  AttentionSpec& one_head = network.blocks.front().attention();
  one_head.heads = one_head.kv_heads = 1;
  return heads * static_cast<double>(t.recipe.test) *
         block_flops(network, network.blocks.front(), t.recipe.tokens);
}

Outcome path_accuracy_outcome(const Config& c, const TokenTrial& t, const TokenData& data,
                              PathAccuracy& paths) {
  const Semantics semantics = semantics_of(text(c, "semantics"));
  const PathScore score = paths.read(semantics, text(c, "reading"), integer(c, "length"));
  Outcome out;
  auto& v = out.values;
  v["accuracy"] = score.accuracy;
  v["full_accuracy"] = paths.full();
  v["chance"] = 1.0 / static_cast<double>(data.classes);
  v["majority"] = majority_share(data.test);
  v["ceiling"] = t.recipe.positions ? 1.0 : ceiling_without_positions(data.test);
  v["paths"] = static_cast<double>(score.paths);
  if (semantics == Semantics::frozen) {
    v["rms"] = score.rms;
    v["residual"] = score.residual;
    v["cancellation"] = score.cancellation;
    if (std::isfinite(score.path_cancellation)) v["path_cancellation"] = score.path_cancellation;
  } else {
    v["spread"] = score.spread;
  }
  return out;
}

void run_path_accuracy(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  const Config& config = jobs.front().config;
  const TokenTrial t = token_trial_of(config);
  const TokenData data = t.task->make(t.data);
  const TrialSpec training = training_of(t, data);
  const auto trained =
      train_shared(training, shared_folder(jobs.front(), kPathAccuracy, path_accuracy_network(config)),
                   context, t.data.text);
  if (!trained) return;
  if (trained->failed) return fail_all(jobs, context, *trained);
  // Paths are read in float64: a length that carries little is a small difference of large sums.
  TrainedModel model(training, trained->parameters, &data.test);
  std::map<int64_t, PathAccuracy> by_draws;
  for (size_t i = 0; i < jobs.size() && !context.stop->load(); ++i) {
    const Config& c = jobs[i].config;
    PathAccuracy& paths =
        by_draws.try_emplace(integer(c, "draws"), model, data.test, draws_of(c, t)).first->second;
    Outcome out = path_accuracy_outcome(c, t, data, paths);
    describe(*trained, out);
    context.finished(i, out);
  }
}

void export_path_accuracy(const TrialJob& job, const std::filesystem::path& folder) {
  const TokenTrial t = token_trial_of(job.config);
  const TokenData data = t.task->make(t.data);
  export_shared(training_of(t, data), shared_folder(job, kPathAccuracy, path_accuracy_network(job.config)),
                std::string(t.task->name), &data.test, folder, t.data.text);
}

}  // namespace

extern const Runner runner_path_accuracy{
    .name = kPathAccuracy,
    .summary = "trains a self-attention network and reads what its paths of each length know",
    .keys = path_accuracy_keys(),
    .results = described_and({"accuracy", "full_accuracy", "chance", "majority", "ceiling", "paths", "rms",
                              "residual", "cancellation", "path_cancellation", "spread"}),
    .check = check_path_accuracy,
    .flops = path_accuracy_flops,
    .stack_key = [](const Config& c) { return canonical(path_accuracy_network(c)); },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 100000; },
    .run = run_path_accuracy,
    .export_model = export_path_accuracy,
    .shared_flops = shared_path_accuracy_flops};

}  // namespace rankscope
