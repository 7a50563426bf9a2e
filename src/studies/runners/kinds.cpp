// Trains small networks that differ in how they attend, and reads off each what it gets wrong, and rank,
// spread and sinks at every depth: as it is, with its skips taken off or a dose of sink, or trained without
// skips. Depth, dose, and whether skips are taken off, are how a trial looks at its network.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <ctime>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "parts/parameters.h"
#include "studies/support/kinds.h"
#include "studies/support/readings.h"
#include "studies/support/shared_training.h"
#include "tasks/support/backcopy.h"
#include "tensors/torch_compat.h"
#include "train/data.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr const char* kKinds = "kinds";
constexpr int64_t kTimedSequences = 64;
constexpr int kTimes = 7;

// Equal for trials that share a training.
Config kinds_network(const Config& c) {
  Config out = without_view(c, kind_keys(), {"depth"});
  for (const char* later : {"shift", "shift_to"}) out.erase(later);  // not there at their defaults
  if (text(c, "skips") == "off") out["skips"] = std::string("on");
  return out;
}

TrialSpec kind_training(const Config& c, const TokenData& data) {
  TrialSpec t = kind_trial(kinds_network(c));
  if (!draws_points(c)) t.set = std::make_shared<TokenSet>(data.train);
  return t;
}

TaskBatch test_batch(const Config& c, const TokenData& data, const TrialSpec& t, int64_t count) {
  if (draws_points(c)) {
    TaskBatch batch = task_named(t.task.name).sample(t.task, *cpu_draw(kTestSeed, 0, 0, count));
    batch.tokens = batch.tokens.to(at::kDouble);
    batch.target = batch.target.to(at::kDouble);
    return batch;
  }
  std::vector<int64_t> some(static_cast<size_t>(count));
  std::iota(some.begin(), some.end(), int64_t{0});
  return batch_of(data.test, some);
}

// What a trained network gets wrong on the test set, and its readings by depth; with skips or without.
struct Looked {
  std::map<std::string, double> values;
  std::vector<Readings> depths;
};

class Network {
 public:
  Network(const Config& c, const TokenData& data, const TrialSpec& t, const std::vector<float>& parameters)
      : config_(c),
        data_(data),
        trial_(t),
        views_(
            Layout(t.network),
            at::tensor(at::ArrayRef<float>(parameters.data(), parameters.size()), at::kFloat).to(at::kDouble),
            false, false) {}

  /// As the trial says: with its skips or without, with a dose of sink.
  Looked look(const Config& c) const {
    const c10::NoGradGuard no_grad;
    ModelSpec network = with_sink_shift(trial_.network, c);
    if (text(c, "skips") == "off") network = without_skips(network);
    const int64_t tokens = integer(config_, "tokens"), all = integer(config_, "test");
    Looked out;
    const TaskBatch some = test_batch(config_, data_, trial_, std::max<int64_t>(1, all / 4));
    answers_and_readings(network, views_, some, tokens, &out.depths);
    const TaskBatch batch = test_batch(config_, data_, trial_, all);
    score(answers_and_readings(network, views_, batch, tokens, nullptr), batch, out.values);
    return out;
  }

  /// hybrid_normalised: how much of a layer's attention is doubly normalised, mean over heads.
  std::optional<double> hybrid_share(int64_t depth) const {
    const at::Tensor mix = views_.get_or_none(fmt::format("blocks.{}.attn.mix", depth - 1));
    if (!mix.defined()) return {};
    return at::sigmoid(mix).mean().item<double>();
  }

  /// Milliseconds of processor time of a forward pass over 64 sequences, composed of plain operations in
  /// float64: the least of seven, since others use the machine's caches, too.
  double forward_ms() const {
    const c10::NoGradGuard no_grad;
    const TaskBatch batch =
        test_batch(config_, data_, trial_, std::min<int64_t>(kTimedSequences, integer(config_, "test")));
    double least = INFINITY;
    for (int i = 0; i < kTimes; ++i) {
      const std::clock_t began = std::clock();
      plain_forward(trial_.network, views_, batch);
      least = std::min(least, 1000.0 * static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    }
    return least;
  }

 private:
  // error: of lookups the mean squared distance from the right point (1 where the answer is zero), of the
  // small language the cross entropy above that of its own law, otherwise the share of wrong answers.
  void score(const at::Tensor& answers, const TaskBatch& batch, std::map<std::string, double>& v) const {
    if (draws_points(config_)) {
      v["error"] = v["loss"] = (answers - batch.target).square().sum(-1).mean().item<double>();
      return;
    }
    const at::Tensor asked = batch.labels.ge(0).nonzero().squeeze(1);
    const at::Tensor scores = answers.index_select(0, asked), labels = batch.labels.index_select(0, asked);
    v["loss"] = at::cross_entropy_loss(scores, labels).item<double>();
    v["wrong"] = 1 - (scores.argmax(-1) == labels).to(at::kDouble).mean().item<double>();
    v["error"] = v["wrong"];
    if (text(config_, "task") == "two_scales") {  // its answers are 2 near + leads
      const at::Tensor answer = scores.argmax(-1);
      const auto share = [](const at::Tensor& differs) {
        return differs.to(at::kDouble).mean().item<double>();
      };
      v["wrong_near"] = share(answer.ge(2) != labels.ge(2));
      v["wrong_leads"] = share(answer.remainder(2) != labels.remainder(2));
    }
    if (text(config_, "task") != "backcopy") return;
    v["loss_floor"] = backcopy_floor(data_.test);
    v["error"] = v["loss"] - v["loss_floor"];
  }

  const Config& config_;
  const TokenData& data_;
  const TrialSpec& trial_;
  ParameterViews views_;
};

Outcome kinds_outcome(const Config& c, const Looked& looked, const TrainOutcome& trained) {
  Outcome out;
  describe(trained, out);
  out.values.insert(looked.values.begin(), looked.values.end());
  for (const auto& [name, value] : looked.depths[static_cast<size_t>(integer(c, "depth"))])
    out.values[name] = value;
  out.values["input_rank_rel"] = looked.depths.front().at("rank_rel");
  out.values["input_spread"] = looked.depths.front().at("spread");
  return out;
}

std::vector<std::string> kinds_results() {
  std::vector<std::string> own = reading_names();
  own.insert(own.end(), {"error", "loss", "wrong", "wrong_near", "wrong_leads", "loss_floor",
                         "input_rank_rel", "input_spread", "hybrid_share", "forward_ms", "forward_flops"});
  return described_and(own);
}

void run_kinds(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  const Config& config = jobs.front().config;
  const TokenData data = draws_points(config) ? TokenData() : token_data(config);
  const TrialSpec training = kind_training(config, data);
  const auto trained =
      train_shared(training, shared_folder(jobs.front(), kKinds, kinds_network(config)), context);
  if (!trained) return;
  if (trained->failed) return fail_all(jobs, context, *trained);
  const Network network(config, data, training, trained->parameters);
  const double forward_ms = network.forward_ms();
  std::map<std::string, Looked> looked;
  for (size_t i = 0; i < jobs.size() && !context.stop->load(); ++i) {
    const std::string how = canonical(without_view(jobs[i].config, kind_keys(), {"depth"}));
    if (!looked.contains(how)) looked[how] = network.look(jobs[i].config);
    Outcome out = kinds_outcome(jobs[i].config, looked.at(how), *trained);
    if (const auto share = network.hybrid_share(integer(jobs[i].config, "depth")))
      out.values["hybrid_share"] = *share;
    out.values["forward_ms"] = forward_ms;
    out.values["forward_flops"] = forward_flops(training.network, integer(config, "tokens"));
    context.finished(i, out);
  }
}

double shared_kinds_flops(const Config& c) {
  const TrialSpec t = kind_trial(kinds_network(c));
  return 3.0 * forward_flops(t.network, integer(c, "tokens")) *
         static_cast<double>(t.protocol.steps * t.protocol.batch);
}

void export_kinds(const TrialJob& job, const std::filesystem::path& folder) {
  const TokenData data = draws_points(job.config) ? TokenData() : token_data(job.config);
  const TrialSpec training = kind_training(job.config, data);
  export_shared(training, shared_folder(job, kKinds, kinds_network(job.config)), text(job.config, "task"),
                nullptr, folder);
}

}  // namespace

extern const Runner runner_kinds{
    .name = kKinds,
    .summary = "trains networks that differ in how they attend, and reads rank, spread and sinks by depth",
    .keys = kind_keys(),
    .results = kinds_results(),
    .check = [](const Config& c) { kind_trial(c); },
    .flops = [](const Config&) { return 0.0; },  // one look answers for every depth
    .stack_key = [](const Config& c) { return canonical(kinds_network(c)); },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 100000; },
    .run = run_kinds,
    .export_model = export_kinds,
    .shared_flops = shared_kinds_flops};

}  // namespace rankscope
