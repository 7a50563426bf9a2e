// Trains a deep self-attention network whose skips are scaled, and asks at every depth which hypothesis of
// the theorem on rank collapse it meets there. Depth, and whether the network is looked at as trained,
// without its skips or before training, are how a trial looks at its network.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <numeric>

#include "base/error.h"
#include "parts/parameters.h"
#include "studies/support/hypotheses.h"
#include "studies/support/kinds.h"
#include "studies/support/shared_training.h"
#include "studies/support/token_config.h"
#include "tensors/torch_compat.h"
#include "train/data.h"
#include "train/export.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr const char *kHypotheses = "hypotheses", *kStart = "start", *kRemoved = "removed";
constexpr int64_t kSequences = 32;  // of the test set, looked into

std::vector<Key> hypotheses_keys() {
  std::vector<Key> all = token_keys();
  all.push_back({"skip", 1.0, "of every block: norm(skip x + f(x)); 0: there are no skips", 0, 1e3});
  all.push_back({"norm", std::string("layer"), "behind attention and MLP", 0, 0, {"layer", "none"}});
  all.push_back({"mlp_gain", 1.0, "multiplies what MLPs write", 1e-9, 1e9});
  all.push_back({"look",
                 std::string("trained"),
                 "as trained, with the skips removed afterwards, or before training",
                 0,
                 0,
                 {"trained", kRemoved, kStart}});
  all.push_back({"depth", int64_t{1}, "blocks passed where it is read", 0, 64});
  return all;
}

Config hypotheses_network(const Config& c) { return without_view(c, hypotheses_keys(), {"look", "depth"}); }

// norm(skip x + f(x)) is norm(x + f(x) / skip): a norm does not see how long its input is.
ModelSpec with_scaled_skips(ModelSpec network, const Config& c) {
  const double skip = number(c, "skip");
  for (BlockSpec& block : network.blocks)
    for (BranchSpec& branch : block.branches) {
      branch.skip = skip > 0;
      branch.scale = (skip > 0 ? 1 / skip : 1.0) * (branch.mlp() != nullptr ? number(c, "mlp_gain") : 1.0);
      branch.behind.off = text(c, "norm") == "none";
    }
  return network;
}

TrialSpec scaled_training(const Config& c, const TokenTrial& t, const TokenData& data) {
  TrialSpec out = training_of(t, data);
  out.network = with_scaled_skips(out.network, c);
  return out;
}

void check_hypotheses(const Config& c) {
  const TokenTrial t = token_trial_of(c);
  token_network(t.recipe, 1, 2);  // refuses heads that do not divide the width
  if (text(c, "norm") == "none" && number(c, "skip") != 0 && number(c, "skip") != 1)
    throw usage_error("without a norm a scaled skip is another network").hint("skip=0, skip=1 or norm=layer");
  if (integer(c, "depth") > t.recipe.layers)
    throw usage_error(
        fmt::format("a network of {} layers has no depth {}", t.recipe.layers, integer(c, "depth")))
        .hint("a smaller depth, or more layers");
}

double accuracy_of(const ModelSpec& network, const std::vector<float>& parameters, const TokenSet& set) {
  const c10::NoGradGuard no_grad;
  const at::Tensor flat =
      at::tensor(at::ArrayRef<float>(parameters.data(), parameters.size()), at::kFloat).to(at::kDouble);
  const ParameterViews views(Layout(network), flat, false, false);
  std::vector<int64_t> all(static_cast<size_t>(set.sequences()));
  std::iota(all.begin(), all.end(), int64_t{0});
  const TaskBatch batch = batch_of(set, all);
  const at::Tensor answers = plain_forward(network, views, batch).argmax(-1), labels = batch.labels;
  return (answers == labels).masked_select(labels.ge(0)).to(at::kDouble).mean().item<double>();
}

// The network as one word of `look` has it, read once for all depths.
struct Seen {
  double accuracy;
  std::vector<Readings> depths;
};

Seen look_at(const TrialSpec& training, const std::vector<float>& parameters, const TokenSet& set,
             bool skips_off) {
  TrainedModel model(training, parameters, &set);
  const ModelSpec network = skips_off ? without_skips(training.network) : training.network;
  return {accuracy_of(network, parameters, set),
          read_hypotheses(skips_off ? without_skips(model.spec()) : model.spec(), model, set, kSequences)};
}

void run_hypotheses(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  const Config& config = jobs.front().config;
  const TokenTrial t = token_trial_of(config);
  const TokenData data = t.task->make(t.data);
  const TrialSpec training = scaled_training(config, t, data);
  TrainOutcome trained;
  if (text(config, "look") == kStart) {
    trained.parameters = initial_parameters(training.network, training.init_seed);
  } else {
    auto done = train_shared(training, shared_folder(jobs.front(), kHypotheses, hypotheses_network(config)),
                             context, t.data.text);
    if (!done) return;
    trained = std::move(*done);
  }
  if (trained.failed) return fail_all(jobs, context, trained);
  std::map<std::string, Seen> seen;
  for (size_t i = 0; i < jobs.size() && !context.stop->load(); ++i) {
    const Config& c = jobs[i].config;
    const std::string& look = text(c, "look");
    if (!seen.contains(look))
      seen.emplace(look, look_at(training, trained.parameters, data.test, look == kRemoved));
    Outcome out;
    if (look != kStart) describe(trained, out);
    out.values["accuracy"] = seen.at(look).accuracy;
    out.values["majority"] = majority_share(data.test);
    for (const auto& [name, value] : seen.at(look).depths[static_cast<size_t>(integer(c, "depth"))])
      out.values[name] = value;
    context.finished(i, out);
  }
}

double shared_hypotheses_flops(const Config& c) {
  const TokenTrial t = token_trial_of(c);
  const int64_t trained = text(c, "look") == kStart ? 0 : 3 * t.recipe.epochs * t.recipe.train;
  return forward_flops(token_network(t.recipe, 1, 2), t.recipe.tokens) *
         static_cast<double>(trained + kSequences);
}

void export_hypotheses(const TrialJob& job, const std::filesystem::path& folder) {
  if (text(job.config, "look") == kStart)
    throw Error("look=start is a network before training, and keeps none")
        .in(job.folder.string())
        .hint("a trial with look=trained");
  const TokenTrial t = token_trial_of(job.config);
  const TokenData data = t.task->make(t.data);
  export_shared(scaled_training(job.config, t, data),
                shared_folder(job, kHypotheses, hypotheses_network(job.config)), std::string(t.task->name),
                &data.test, folder, t.data.text);
}

}  // namespace

extern const Runner runner_hypotheses{
    .name = kHypotheses,
    .summary = "trains a deep network with scaled skips and reads which hypotheses of collapse it meets",
    .keys = hypotheses_keys(),
    .results = described_and({"accuracy", "majority", "residual_log10", "residual", "spread", "oscillation",
                              "holds", "margin", "lambda", "lambda_allowed", "local_exponent", "use"}),
    .check = check_hypotheses,
    .flops = [](const Config&) { return 0.0; },  // one look answers for every depth
    .stack_key =
        [](const Config& c) {
          return canonical(hypotheses_network(c)) + (text(c, "look") == kStart ? " before training" : "");
        },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 100000; },
    .run = run_hypotheses,
    .export_model = export_hypotheses,
    .shared_flops = shared_hypotheses_flops};

}  // namespace rankscope
