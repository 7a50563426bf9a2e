#include "train/fused_forward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "train/cpu_tile.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

at::Tensor flat(const TrialSpec& t) { return tensor_of(starting_parameters(t)); }

TrialSpec regression_trial() {
  EncoderWords w = small_words();
  w.d = 5;
  w.answer = 1;
  w.embed = 12;
  w.positions = 6;
  TrialSpec t = trial_of(w);
  t.task = {.name = "regression", .d = 4, .n = 6};
  t.network.output.last_token = true;
  return t;
}

TrialSpec biased_trial() {
  TrialSpec t = small_layer(8, 2, 9, 3);
  t.task.name = "biased";
  t.network = points_layer(8, 3, 9, 1.0, 8, 2, 2);
  return t;
}

std::vector<TrialSpec> every_kind() {
  std::vector<TrialSpec> out{small_encoder(), small_encoder(8), small_layer(8, 3, 4, 2), regression_trial(),
                             biased_trial()};
  for (const NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms})
    for (const NormPlace place : {NormPlace::post, NormPlace::pre}) {
      EncoderWords w = small_words();
      w.norm = norm;
      w.place = place;
      out.push_back(trial_of(w));
    }
  for (const int64_t beside : {0, 4}) {
    EncoderWords w = small_words();
    w.positions = 6;
    w.position_width = beside;
    w.mlp = 0;
    out.push_back(trial_of(w));
  }
  EncoderWords hard = small_words();
  hard.hard = true;
  out.push_back(trial_of(hard));
  return out;
}

at::Tensor answers(const TrialSpec& t, const TaskBatch& b, const at::Tensor& parameters, bool fused) {
  return forward({&t.network}, ParameterViews(Layout(t.network), parameters, false, fused), b);
}

// One description, two executors. In double precision the two differ by roundings alone: a dozen sums of at
// most 48 terms, each of them 1e-16, through norms that divide by numbers near one.
TEST(Forward, FusedAndPlainAreTheSameNetwork) {
  for (const TrialSpec& t : every_kind()) {
    ASSERT_TRUE(fused_forward_covers(t.network)) << describe(t.network);
    const TaskBatch b = sampled(t, 7, at::kDouble);
    const at::Tensor p = flat(t).to(at::kDouble);
    const at::Tensor plain = answers(t, b, p, false);
    EXPECT_LT((answers(t, b, p, true) - plain).abs().max().item<double>(),
              1e-12 * (1 + plain.abs().max().item<double>()))
        << describe(t.network);
  }
}

// Every word a description may have beside those the fused operators read: none of them may pass as if it
// were not there.
TEST(Forward, AFusedRouteRefusesEveryNetworkItDoesNotKnow) {
  using Edit = std::function<void(ModelSpec&)>;
  const auto attention = [](auto change) {
    return Edit([change](ModelSpec& s) { change(s.blocks.back().attention()); });
  };
  const auto branch = [](auto change) {
    return Edit([change](ModelSpec& s) { change(s.blocks.back().branches.back()); });
  };
  const std::map<std::string, Edit> edits{
      {"relative", attention([](AttentionSpec& a) { a.variant = "relative"; })},
      {"kv_heads", attention([](AttentionSpec& a) { a.kv_heads = 1; })},
      {"causal", attention([](AttentionSpec& a) { a.causal = true; })},
      {"window", attention([](AttentionSpec& a) { a.window = 3; })},
      {"positions", attention([](AttentionSpec& a) { a.positions = false; })},
      {"rotary", attention([](AttentionSpec& a) { a.rotary_frequencies = {1.0}; })},
      {"key_bias", attention([](AttentionSpec& a) { a.key_bias = !a.key_bias; })},
      {"output_bias", attention([](AttentionSpec& a) { a.output_bias = !a.output_bias; })},
      {"value_map", attention([](AttentionSpec& a) { a.value_map = !a.value_map; })},
      {"heads_off", attention([](AttentionSpec& a) { a.heads_off = {0}; })},
      {"truncate_qk", attention([](AttentionSpec& a) { a.truncate_qk = 1; })},
      {"truncate_ov", attention([](AttentionSpec& a) { a.truncate_ov = 1; })},
      {"part", branch([](BranchSpec& b) { b.part.name = "somebody_else"; })},
      {"option", branch([](BranchSpec& b) { b.part.options["gate"] = 1; })},
      {"inside", branch([](BranchSpec& b) { b.inside = {NormKind::layer}; })},
      {"scale", branch([](BranchSpec& b) { b.scale = 2; })},
      {"skip", branch([](BranchSpec& b) { b.skip = !b.skip; })},
      {"behind", branch([](BranchSpec& b) { b.behind.epsilon = 0.5; })},
      {"before", branch([](BranchSpec& b) { b.before.off = true; })},
      {"reads", branch([](BranchSpec& b) { b.reads = b.reads.empty() ? "encoder" : ""; })},
      {"name", branch([](BranchSpec& b) { b.name = "other"; })},
      {"parallel", [](ModelSpec& s) { s.blocks.back().parallel = true; }},
      {"weights", [](ModelSpec& s) { s.blocks.back().weights = 7; }},
      {"a branch more",
       [](ModelSpec& s) { s.blocks.back().branches.push_back(s.blocks.back().branches[0]); }},
      {"another block", [](ModelSpec& s) { s.blocks.push_back({}); }},
      {"final norm", [](ModelSpec& s) { s.final_norm.epsilon = 0.5; }},
      {"words", [](ModelSpec& s) { s.embedding.vocabulary = 10; }},
      {"types", [](ModelSpec& s) { s.embedding.types = 2; }},
      {"offset", [](ModelSpec& s) { s.embedding.position_offset = 2; }},
      {"embedding norm", [](ModelSpec& s) { s.embedding.norm = {NormKind::layer}; }},
      {"norm behind", [](ModelSpec& s) { s.embedding.norm_behind = {NormKind::layer}; }},
      {"activation", [](ModelSpec& s) { s.embedding.point_activation = true; }},
      {"transformed", [](ModelSpec& s) { s.output.kind = HeadKind::transformed; }},
      {"tied", [](ModelSpec& s) { s.output.tied = true; }}};
  for (const TrialSpec& t : every_kind())
    for (const auto& [what, edit] : edits) {
      TrialSpec changed = t;
      edit(changed.network);
      EXPECT_FALSE(fused_forward_covers(changed.network)) << what << " of " << describe(t.network);
      EXPECT_FALSE(EncoderTile::covers(changed)) << what;
    }
  TrialSpec gelu = small_encoder();
  gelu.network.blocks[0].mlp_branch()->mlp()->activation = Activation::gelu;
  EXPECT_FALSE(fused_forward_covers(gelu.network));
}

TEST(Forward, AnswersHaveTheShapeOfTheTarget) {
  for (const TrialSpec& t : every_kind()) {
    const TaskBatch b = sampled(t, 7);
    for (const bool fused : {true, false}) EXPECT_EQ(answers(t, b, flat(t), fused).sizes(), b.target.sizes());
  }
}

// The stacked executor is CUDA's; on the CPU both can be compared.
TEST(Forward, AStackGivesWhatItsTrialsGiveAlone) {
  for (const TrialSpec& t : every_kind())
    for (const bool fused : {true, false}) {
      TrialSpec u = t;
      u.init_seed = 77;
      const Layout layout(t.network);
      const TaskBatch b = sampled(t, 7, at::kDouble);
      const auto twice = [](const at::Tensor& x) { return x.defined() ? at::stack({x, x}) : x; };
      const TaskBatch both{twice(b.tokens), twice(b.queries), twice(b.target)};
      const at::Tensor parameters = at::stack({flat(t), flat(u)}).to(at::kDouble);
      const at::Tensor stacked =
          forward({&t.network, &u.network}, ParameterViews(layout, parameters, false, fused), both);
      const at::Tensor alone = answers(u, b, flat(u).to(at::kDouble), fused);
      EXPECT_LT((stacked[1] - alone).abs().max().item<double>(),
                1e-12 * (1 + alone.abs().max().item<double>()));
    }
}

// In double precision: the derivative along a random direction against a central difference, which is off by
// the square of its step and by the rounding of the loss over it.
TEST(Forward, GradientsAreDerivatives) {
  for (const TrialSpec& t : every_kind())
    for (const bool fused : {true, false}) {
      const Layout layout(t.network);
      const TaskBatch b = sampled(t, 5, at::kDouble);
      const at::Tensor p = flat(t).to(at::kDouble);
      const ParameterViews views(layout, p, true, fused);
      const auto loss_at = [&](const at::Tensor& at_point) {
        return squared_error(answers(t, b, at_point, fused), b.target).sum().item<double>();
      };
      const at::Tensor loss = squared_error(forward({&t.network}, views, b), b.target).sum();
      const auto gradients = gradients_of(loss, views.leaves());
      at::manual_seed(1);
      const at::Tensor direction = at::randn_like(p) * 0.1;
      double slope = 0;
      for (size_t i = 0; i < gradients.size(); ++i)
        slope += (gradients[i].flatten() * direction.narrow(0, views.offsets()[i], gradients[i].numel()))
                     .sum()
                     .item<double>();
      const double h = 1e-5, difference = (loss_at(p + direction * h) - loss_at(p - direction * h)) / (2 * h);
      EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(difference))) << describe(t.network);
    }
}

}  // namespace
}  // namespace rankscope
