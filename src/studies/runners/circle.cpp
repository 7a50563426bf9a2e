// Teaches one layer to walk two points along a circle, then lets it walk on its own: does attention pull the
// two trajectories together? The step of the free walk is how a trial looks at its network.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "studies/support/shared_training.h"
#include "studies/support/token_config.h"
#include "tasks/support/circle.h"
#include "tensors/torch_compat.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr const char* kCircle = "circle";
const std::vector<std::string> kCircleView{"step"};
constexpr int64_t kWalk = 300;  // steps of the free walk
constexpr double kClose =
    1e-3;  // of two points beside each other: half a step of the walk, far above rounding
constexpr double kResolved =
    1e-12;  // differences below this are rounding: the exponent is at most what it says
constexpr uint32_t kInit = 1, kCircleData = 2;

std::vector<Key> circle_keys() {
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

TrialSpec circle_training(const Config& c) {
  const auto seed = static_cast<uint64_t>(integer(c, "seed"));
  TokenRecipe r;
  if (reference(c)) {
    r = {.epochs = 70, .batch = 30, .lr = 1e-5};
  } else {  // until the error of a step is far below its length
    r = {.epochs = 200, .batch = 50, .lr = 3e-3, .dropout = 0, .shuffle = true};
    r.schedule = TokenRecipe::Schedule::linear;
  }
  r.layers = 1;
  r.heads = integer(c, "heads");
  r.width = integer(c, "d");
  r.mlp = flag(c, "mlp");
  if (integer(c, "epochs") > 0) r.epochs = integer(c, "epochs");
  if (number(c, "lr") > 0) r.lr = number(c, "lr");
  TrialSpec t;
  t.network = token_network(r, 0, 2, flag(c, "skip"));
  t.set = std::make_shared<TokenSet>(circle_walk(integer(c, "points"), reference(c)));
  t.protocol = protocol_of(r, t.set->sequences());
  t.init_seed = Philox{seed, kInit, 0}.below(UINT64_MAX, 0);
  t.data_seed = Philox{seed, kCircleData, 0}.below(UINT64_MAX, 0);
  return t;
}

Config circle_network(const Config& c) { return without_view(c, circle_keys(), kCircleView); }

double shared_circle_flops(const Config& c) { return training_flops(circle_training(c)); }

class Walk {
 public:
  Walk(const TrialSpec& t, const std::vector<float>& parameters, double step) : step_(step) {
    const c10::NoGradGuard no_grad;
    const at::Tensor flat =
        at::tensor(at::ArrayRef<float>(parameters.data(), parameters.size()), at::kFloat).to(at::kDouble);
    const ParameterViews views(Layout(t.network), flat, false, false);
    const auto plane = [](const std::vector<double>& numbers) {
      return at::tensor(numbers, at::kDouble).view({-1, 2, 2});
    };
    TaskBatch at;
    at.tokens = plane(t.set->points);
    const at::Tensor taught = plain_forward(t.network, views, at).view({-1, 2, 2});
    error_ = (taught - plane(t.set->targets)).square().mean().sqrt().item<double>();
    at.tokens = at.tokens.narrow(0, 0, 1);
    for (int64_t k = 0; k <= kWalk; ++k) {
      distances_.push_back((at.tokens[0][0] - at.tokens[0][1]).norm().item<double>());
      radii_.push_back(at.tokens[0].norm(2, -1).mean().item<double>());
      at.tokens = plain_forward(t.network, views, at).view({1, 2, 2});
    }
    walk_closely(t, views, plane(t.set->points)[0][0]);
  }

  double error() const { return error_; }  // root mean square of a coordinate, one taught step
  double distance(int64_t k) const { return distances_[static_cast<size_t>(k)]; }
  double radius(int64_t k) const { return radii_[static_cast<size_t>(k)]; }
  /// Mean growth, in nats a step, of the difference of two points that walk side by side, set back to kClose
  /// after every step: the Lyapunov exponent of the difference. Below 0: points that have met stay together.
  double lyapunov() const { return lyapunov_; }
  /// How that growth depends on their distance: log2 of what twice the distance becomes over what the
  /// distance becomes. 1: a factor a step; 3: the cubic law, and the exponent above is -infinity in the
  /// limit.
  double contact_order() const { return contact_order_; }
  /// The step from which on the points stay closer than one step of the walk; kWalk + 1 where they do not.
  int64_t merged_at() const {
    int64_t k = kWalk + 1;
    while (k > 0 && distance(k - 1) < step_) --k;
    return k;
  }

 private:
  void walk_closely(const TrialSpec& t, const ParameterViews& views, const at::Tensor& start) {
    at::Tensor middle = start, ahead = at::tensor({1.0, 0.0}, at::kDouble);
    const auto walked = [&](double apart) {
      TaskBatch at;
      at.tokens = at::stack({middle + ahead * (apart / 2), middle - ahead * (apart / 2)}).unsqueeze(0);
      return plain_forward(t.network, views, at).view({2, 2});
    };
    double doubled = 0;
    int64_t resolved = 0;
    for (int64_t k = 0; k < kWalk; ++k) {
      const at::Tensor near = walked(kClose), far = walked(2 * kClose), apart = near[0] - near[1];
      const double length = apart.norm().item<double>();
      lyapunov_ += std::log(std::max(length, kResolved) / kClose) / kWalk;
      middle = near.mean(0);
      if (!(length > kResolved)) continue;
      doubled += std::log2((far[0] - far[1]).norm().item<double>() / length);
      ahead = apart / length;
      ++resolved;
    }
    contact_order_ = doubled / static_cast<double>(resolved);
  }

  double lyapunov_ = 0, contact_order_ = 0;
  double step_, error_ = 0;
  std::vector<double> distances_, radii_;
};

void run_circle(std::span<const TrialJob> jobs, const RunContext& context) {
  use_threads(context.threads);
  const Config& config = jobs.front().config;
  const TrialSpec training = circle_training(config);
  const auto trained =
      train_shared(training, shared_folder(jobs.front(), kCircle, circle_network(config)), context);
  if (!trained) return;
  if (trained->failed) return fail_all(jobs, context, *trained);
  const double step = circle_step(integer(config, "points"));
  const Walk walk(training, trained->parameters, step);
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int64_t k = integer(jobs[i].config, "step");
    Outcome out;
    out.values = {{"distance", walk.distance(k)},
                  {"radius", walk.radius(k)},
                  {"merged", walk.merged_at() <= kWalk ? 1.0 : 0.0},
                  {"rmse", walk.error()},
                  {"step_length", step}};
    if (std::isfinite(walk.lyapunov())) out.values["lyapunov"] = walk.lyapunov();
    if (std::isfinite(walk.contact_order())) out.values["contact_order"] = walk.contact_order();
    if (walk.merged_at() <= kWalk) out.values["merge_step"] = static_cast<double>(walk.merged_at());
    describe(*trained, out);
    context.finished(i, out);
  }
}

void export_circle(const TrialJob& job, const std::filesystem::path& folder) {
  const TrialSpec training = circle_training(job.config);
  export_shared(training, shared_folder(job, kCircle, circle_network(job.config)), kCircle,
                training.set.get(), folder);
}

}  // namespace

extern const Runner runner_circle{
    .name = kCircle,
    .summary = "teaches one layer to walk two points along a circle and lets it walk on",
    .keys = circle_keys(),
    .results = described_and(
        {"distance", "radius", "merged", "rmse", "step_length", "lyapunov", "contact_order", "merge_step"}),
    .check = [](const Config& c) { circle_training(c); },
    .flops = [](const Config&) { return 0.0; },  // one walk answers for every step
    .stack_key = [](const Config& c) { return canonical(circle_network(c)); },
    .stack_limit = [](const Config&, const std::string&) -> int64_t { return 100000; },
    .run = run_circle,
    .export_model = export_circle,
    .shared_flops = shared_circle_flops};

}  // namespace rankscope
