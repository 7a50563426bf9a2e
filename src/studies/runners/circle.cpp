// Teaches one layer to walk two points along a circle, then lets it walk on its own: does attention pull the
// two trajectories together? The step of the free walk is how a trial looks at its network.
#include <c10/core/GradMode.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "model/torch_compat.h"
#include "studies/support/shared_training.h"
#include "tasks/support/circle.h"
#include "train/token_model.h"

namespace rankscope {
namespace {

constexpr const char* kName = "circle";
const std::vector<std::string> kView{"step"};
constexpr int64_t kWalk = 300;  // steps of the free walk
constexpr uint32_t kInit = 1, kData = 2;

std::vector<Key> keys() {
  return {{"protocol",
           std::string("corrected"),
           "settings that train, or those of the published code",
           0,
           0,
           {"corrected", "reference"}},
          {"d", int64_t{32}, "width", 2, 4096},
          {"heads", int64_t{2}, "heads", 1, 256},
          {"skip", false, "around attention; the published code has it in every setting"},
          {"mlp", false, "with its own skip"},
          {"points", int64_t{1000}, "places on the circle", 8, 1e6},
          {"epochs", int64_t{0}, "over all places; 0: as the protocol says", 0, 1e6},
          {"lr", 0.0, "learning rate; 0: as the protocol says", 0, 1e3},
          {"step", int64_t{kWalk}, "of the free walk, at which the distance is read", 0, kWalk},
          {"seed", int64_t{0}, "of initialisation and data, independently", 0, 1e15}};
}

bool reference(const Config& c) { return text(c, "protocol") == "reference"; }

TokenTraining training_of(const Config& c) {
  const auto seed = static_cast<uint64_t>(integer(c, "seed"));
  TokenTraining t;
  t.network = {.layers = 1,
               .heads = integer(c, "heads"),
               .width = integer(c, "d"),
               .mlp = flag(c, "mlp"),
               .skip = flag(c, "skip"),
               .outputs = 2};
  if (reference(c)) {
    t.recipe = {.epochs = 70, .batch = 30, .lr = 1e-5};
  } else {  // until the error of a step is far below its length
    t.recipe = {.epochs = 200, .batch = 50, .lr = 3e-3, .dropout = 0, .shuffle = true};
    t.recipe.schedule = TokenRecipe::Schedule::linear;
  }
  if (integer(c, "epochs") > 0) t.recipe.epochs = integer(c, "epochs");
  if (number(c, "lr") > 0) t.recipe.lr = number(c, "lr");
  t.init_seed = Philox{seed, kInit, 0}.below(UINT64_MAX, 0);
  t.data_seed = Philox{seed, kData, 0}.below(UINT64_MAX, 0);
  return t;
}

Config network_of(const Config& c) { return without_view(c, keys(), kView); }

double shared_flops(const Config& c) { return training_flops(training_of(c), integer(c, "points") / 2, 2); }

class Walk {
 public:
  Walk(const TokenNetwork& network, const at::Tensor& flat, const TokenSet& set, double step) : step_(step) {
    const c10::NoGradGuard no_grad;
    const TokenParameters parameters(network, flat, false);
    std::vector<int64_t> all(static_cast<size_t>(set.sequences()));
    std::iota(all.begin(), all.end(), int64_t{0});
    const at::Tensor taught = token_forward(network, parameters, batch_of(set, all, true));
    const at::Tensor right = at::tensor(set.targets, at::kDouble).view({-1, 2});
    error_ = (taught - right).square().mean().sqrt().item<double>();
    TokenBatch at = batch_of(set, {0}, true);
    for (int64_t k = 0; k <= kWalk; ++k) {
      distances_.push_back((at.points[0][0] - at.points[0][1]).norm().item<double>());
      radii_.push_back(at.points[0].norm(2, -1).mean().item<double>());
      at.points = token_forward(network, parameters, at).view({1, 2, 2});
    }
  }

  double error() const { return error_; }  // root mean square of a coordinate, one taught step
  double distance(int64_t k) const { return distances_[static_cast<size_t>(k)]; }
  double radius(int64_t k) const { return radii_[static_cast<size_t>(k)]; }
  /// The step from which on the points stay closer than one step of the walk; kWalk + 1 where they do not.
  int64_t merged_at() const {
    int64_t k = kWalk + 1;
    while (k > 0 && distance(k - 1) < step_) --k;
    return k;
  }

 private:
  double step_, error_ = 0;
  std::vector<double> distances_, radii_;
};

void run(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  const Config& config = jobs.front().config;
  const TokenTraining training = training_of(config);
  const TokenSet set = circle_walk(integer(config, "points"), reference(config));
  const auto trained =
      train_shared(training, set, shared_folder(jobs.front(), kName, network_of(config)), context);
  if (!trained) return;
  if (trained->diverged) return fail_all(jobs, context, *trained);
  const double step = circle_step(integer(config, "points"));
  const Walk walk(training.network, in_double(*trained), set, step);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int64_t k = integer(jobs[i].config, "step");
    Outcome out;
    out.values = {{"distance", walk.distance(k)},
                  {"radius", walk.radius(k)},
                  {"merged", walk.merged_at() <= kWalk ? 1.0 : 0.0},
                  {"rmse", walk.error()},
                  {"step_length", step}};
    if (walk.merged_at() <= kWalk) out.values["merge_step"] = static_cast<double>(walk.merged_at());
    describe(*trained, out);
    context.finished(i, out);
  }
}

void export_trial(const TrialJob& job, const std::filesystem::path& folder) {
  const TokenTraining training = training_of(job.config);
  const std::filesystem::path from = shared_folder(job, kName, network_of(job.config));
  const auto trained = load_trained(from, training.network);
  if (!trained) throw Error("the trial's network is not there").in(from.string()).hint("run the trial again");
  const TokenSet set = circle_walk(integer(job.config, "points"), reference(job.config));
  export_token_model(TokenModel(training.network, in_double(*trained), set), kName, folder);
}

}  // namespace

extern const Runner runner_circle{
    .name = kName,
    .summary = "teaches one layer to walk two points along a circle and lets it walk on",
    .keys = keys(),
    .check = [](const Config& c) { check(training_of(c).network); },
    .flops = [](const Config&) { return 0.0; },  // one walk answers for every step
    .stack_key = [](const Config& c) { return canonical(network_of(c)); },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 100000; },
    .run = run,
    .export_model = export_trial,
    .shared_flops = shared_flops};

}  // namespace rankscope
