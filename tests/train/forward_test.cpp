#include "train/forward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "train/cpu_stack.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

at::Tensor flat(const TrialSpec& t) {
  const std::vector<float> p = starting_parameters(t);
  return at::tensor(at::ArrayRef<float>(p.data(), p.size()), at::kFloat);
}

std::vector<TrialSpec> every_kind() {
  std::vector<TrialSpec> out{small_encoder(), small_encoder(8), small_layer(8, 3, 4, 2)};
  for (const NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms})
    for (const NormPlace place : {NormPlace::post, NormPlace::pre}) {
      TrialSpec t = small_encoder();
      t.network.norm = norm;
      t.network.place = place;
      out.push_back(t);
    }
  for (const Positions positions : {Positions::additive, Positions::concatenated}) {
    TrialSpec t = small_encoder();
    t.network.positions = positions;
    t.network.position_width = positions == Positions::concatenated ? 4 : 0;
    t.network.mlp = 0;
    out.push_back(t);
  }
  TrialSpec regression = small_encoder();
  regression.task = {.name = "regression", .d = 4, .n = 6};
  regression.network.token_width = 5;
  regression.network.answer_width = 1;
  regression.network.embed = 12;
  regression.network.positions = Positions::additive;
  out.push_back(regression);
  TrialSpec biased = small_layer(8, 2, 9, 3);
  biased.task.name = "biased";
  biased.network.positions = Positions::concatenated;
  biased.network.position_width = 2;
  out.push_back(biased);
  return out;
}

TaskBatch batch_of(const TrialSpec& t, int64_t count) {
  return task_named(t.task.name).sample(t.task, *cpu_draw(t.data_seed, 0, 0, count));
}

TEST(Forward, AnswersHaveTheShapeOfTheTarget) {
  for (const TrialSpec& t : every_kind()) {
    const Layout layout(t.network);
    const TaskBatch b = batch_of(t, 7);
    EXPECT_EQ(forward({&t.network}, ParameterViews(layout, flat(t), false), b).sizes(), b.target.sizes());
  }
}

// The stacked executor is CUDA's; on the CPU both can be compared.
TEST(Forward, AStackGivesWhatItsTrialsGiveAlone) {
  for (const TrialSpec& t : every_kind()) {
    TrialSpec u = t;
    u.init_seed = 77;
    const Layout layout(t.network);
    const TaskBatch b = batch_of(t, 7);
    const auto twice = [](const at::Tensor& x) { return x.defined() ? at::stack({x, x}) : x; };
    const TaskBatch both{twice(b.tokens), twice(b.queries), twice(b.target), b.last_token};
    const at::Tensor parameters = at::stack({flat(t), flat(u)});
    const at::Tensor stacked =
        forward({&t.network, &u.network}, ParameterViews(layout, parameters, false), both);
    const at::Tensor alone = forward({&u.network}, ParameterViews(layout, flat(u), false), b);
    EXPECT_LT((stacked[1] - alone).abs().max().item<double>(), 1e-5 * (1 + alone.abs().max().item<double>()));
  }
}

// In double precision: the derivative along a random direction against a central difference.
TEST(Forward, GradientsAreDerivatives) {
  for (const TrialSpec& t : every_kind()) {
    const Layout layout(t.network);
    TaskBatch b = batch_of(t, 5);
    for (at::Tensor* x : {&b.tokens, &b.queries, &b.target})
      if (x->defined()) *x = x->to(at::kDouble);
    const at::Tensor p = flat(t).to(at::kDouble);
    const ParameterViews views(layout, p, true);
    const auto loss_at = [&](const at::Tensor& at_point) {
      return squared_error(forward({&t.network}, ParameterViews(layout, at_point, false), b), b.target)
          .sum()
          .item<double>();
    };
    const at::Tensor loss = squared_error(forward({&t.network}, views, b), b.target).sum();
    const auto gradients = torch::autograd::grad({loss}, views.leaves());
    at::manual_seed(1);
    const at::Tensor direction = at::randn_like(p) * 0.1;
    double slope = 0;
    for (size_t i = 0; i < gradients.size(); ++i)
      slope += (gradients[i].flatten() * direction.narrow(0, views.offsets()[i], gradients[i].numel()))
                   .sum()
                   .item<double>();
    const double h = 1e-5, difference = (loss_at(p + direction * h) - loss_at(p - direction * h)) / (2 * h);
    EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(difference)));
  }
}

}  // namespace
}  // namespace rankscope
