// What every part promises, held for each file of src/parts/: its forward pass, its frozen form, its split
// arithmetic, its gradients, its sites and its description agree, and it trains and is scanned as trained.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "operator/frozen.h"
#include "operator/split.h"
#include "parts/check.h"
#include "parts/parameters.h"
#include "spec/json.h"
#include "studies/support/train_config.h"
#include "support/tiny.h"
#include "train/export.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

class PartContract : public testing::TestWithParam<const Part*> {
 protected:
  // A small model in which every block runs the part.
  static ModelSpec model(NormPlace place) {
    ModelSpec s = tiny_spec(place, 2);
    for (BlockSpec& block : s.blocks)
      for (BranchSpec& b : block.branches) {
        if ((GetParam()->kind == Part::Kind::attention) != (b.attention() != nullptr)) continue;
        b.part.name = GetParam()->name;
        if (!GetParam()->variant.empty()) b.attention()->variant = GetParam()->variant;
      }
    check(s, "the test");
    return s;
  }
  // The same, and once more for every other value of each option that has few.
  static std::vector<ModelSpec> models(NormPlace place) {
    std::vector<ModelSpec> out{model(place)};
    for (const PartOption& o : GetParam()->options)
      for (double value = o.low; value <= o.high && o.high - o.low <= 8; ++value) {
        if (value == o.otherwise) continue;
        ModelSpec s = out.front();
        for (BlockSpec& block : s.blocks)
          for (BranchSpec& b : block.branches)
            if (b.part.name == GetParam()->name) b.part.options[std::string(o.name)] = value;
        out.push_back(s);
      }
    return out;
  }
  static double distance(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
  }
};

struct Ready {
  explicit Ready(const ModelSpec& s, const std::vector<int64_t>& lengths = {7, 4, 7})
      : spec(s),
        source(random_source(spec, 5, "float64", "cpu")),
        batch(make_batches(random_samples(lengths, 50), spec, 8).front()),
        x(embed(batch, spec, source->load("embed"), *source)) {}
  at::Tensor block(BlockObserver& observer) const {
    return run_block(x, spec.blocks[0], source->load("blocks.0"), batch, observer);
  }
  ModelSpec spec;
  std::unique_ptr<WeightSource> source;
  Batch batch;
  at::Tensor x;
};

TEST_P(PartContract, IsADescriptionThatReadsBack) {
  const ModelSpec s = model(NormPlace::pre);
  EXPECT_EQ(spec_from_json(to_json(s), "here"), s);
}

TEST_P(PartContract, DeclaresOptionsWithARangeTheirDefaultLiesIn) {
  for (const PartOption& o : GetParam()->options) {
    EXPECT_GE(o.otherwise, o.low) << o.name;
    EXPECT_LE(o.otherwise, o.high) << o.name;
    EXPECT_FALSE(o.meaning.empty()) << o.name;
    ModelSpec s = model(NormPlace::pre);
    for (BranchSpec& b : s.blocks[0].branches)
      if (b.part.name == GetParam()->name) b.part.options[std::string(o.name)] = o.high + 1;
    EXPECT_THROW(check(s, "the test"), Error) << o.name;
  }
}

// Exact at the input it was frozen at: sums of at most 48 terms in double precision.
TEST_P(PartContract, FrozenIsTheForwardPassAtItsInput) {
  std::vector<ModelSpec> all = models(NormPlace::pre);
  all.push_back(model(NormPlace::post));
  for (const ModelSpec& one_of_them : all) {
    const Ready m(one_of_them);
    const FrozenNetwork frozen(m.spec, *m.source, m.batch);
    BlockObserver nobody;
    at::Tensor x = m.x;
    for (const BlockSpec& b : m.spec.blocks)
      x = run_block(x, b, m.source->load("blocks." + std::to_string(b.weights)), m.batch, nobody);
    if (m.spec.final_norm.there())
      x = at::layer_norm(x, {x.size(1)}, m.source->load("ln_final").get("w"),
                         m.source->load("ln_final").get("b"), m.spec.final_norm.epsilon);
    EXPECT_LT(distance(frozen.output(), x), 1e-12);
    EXPECT_LT(distance(frozen.trunk().affine(m.x), x), 1e-12);
    // The adjoint is the adjoint: <y, T v> = <T* y, v>.
    at::manual_seed(3);
    const at::Tensor v = at::randn_like(m.x), y = at::randn_like(m.x);
    const double one = (y * frozen.trunk().apply(v)).sum().item<double>(),
                 other = (frozen.trunk().adjoint(y) * v).sum().item<double>();
    EXPECT_NEAR(one, other, 1e-10 * (std::abs(one) + y.norm().item<double>()));
  }
}

// Split arithmetic follows the same network, or says that it cannot.
TEST_P(PartContract, SplitArithmeticIsTheSameNetwork) {
  for (const ModelSpec& s : models(NormPlace::post)) {
    const Ready m(s, {7});
    BlockObserver nobody;
    SplitTokens split(m.x);
    try {
      split.advance(m.spec.blocks[0], m.source->load("blocks.0"), m.batch);
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("split arithmetic"), std::string::npos) << e.what();
      continue;
    }
    EXPECT_LT(distance(split.whole(), m.block(nobody)), 1e-11) << to_json(s).dump();
  }
}

TEST_P(PartContract, ShowsTheSitesItDeclares) {
  class Names : public BlockObserver {
   public:
    bool wants(std::string_view) const override { return true; }
    void see(std::string_view site, const at::Tensor&, const TilePlace&) override { seen.emplace(site); }
    std::set<std::string> seen;
  } names;
  const Ready m(model(NormPlace::pre));
  m.block(names);
  for (const std::string& site : names.seen) EXPECT_NO_THROW(site_named(site)) << site;
  for (const PartSite& site : GetParam()->sites)
    EXPECT_TRUE(names.seen.count(std::string(site.name))) << site.name;
}

Config small_config(const Part& part) {
  Config given{{"task", std::string("farthest")},
               {"d", int64_t{6}},
               {"n", int64_t{4}},
               {"layers", int64_t{2}},
               {"heads", int64_t{2}},
               {"rank", int64_t{part.variant == "differential" ? 2 : 3}},  // which it halves
               {"mlp", int64_t{8}},
               {"norm", std::string("layer")}};
  given[part.kind == Part::Kind::attention ? "part" : "mlp_part"] = std::string(part.name);
  return complete(train_keys(), given, "test");
}

std::vector<float> moved_from_start(const TrialSpec& t) {
  std::vector<float> p = starting_parameters(t);
  const Philox random{3, 1, 0};
  for (size_t i = 0; i < p.size(); ++i) p[i] += static_cast<float>(0.2 * random.normal(i));
  return p;
}

// Central differences: off by the square of the step, and by the rounding of the loss over it.
TEST_P(PartContract, GradientsAreDerivatives) {
  const TrialSpec t = trial_of(small_config(*GetParam()));
  const TaskBatch b = sampled(t, 5, at::kDouble);
  const at::Tensor p = tensor_of(moved_from_start(t)).to(at::kDouble);
  const Layout layout(t.network);
  const ParameterViews views(layout, p, true, false);
  const auto loss_of = [&](const ParameterViews& v) {
    return squared_error(forward({&t.network}, v, b), b.target).sum();
  };
  const auto gradients = gradients_of(loss_of(views), views.leaves());
  at::manual_seed(1);
  const at::Tensor direction = at::randn_like(p) * 0.1;
  double slope = 0;
  for (size_t i = 0; i < gradients.size(); ++i)
    slope += (gradients[i].flatten() * direction.narrow(0, views.offsets()[i], gradients[i].numel()))
                 .sum()
                 .item<double>();
  const double h = 1e-6;
  const auto at_point = [&](double step) {
    return loss_of(ParameterViews(layout, p + direction * step, false, false)).item<double>();
  };
  const double difference = (at_point(h) - at_point(-h)) / (2 * h);
  EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(difference)));
}

TEST_P(PartContract, EveryParameterOfItCounts) {
  const TrialSpec t = trial_of(small_config(*GetParam()));
  const TaskBatch b = sampled(t, 5, at::kDouble);
  const at::Tensor p = tensor_of(moved_from_start(t)).to(at::kDouble);
  const ParameterViews views(Layout(t.network), p, true, false);
  const auto gradients =
      gradients_of(squared_error(forward({&t.network}, views, b), b.target).sum(), views.leaves());
  const Layout layout(t.network);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string& name = layout.slots()[i].parameter.name;
    // The scores' sums over keys do not see a key's bias; segments need token types.
    if (name.ends_with("b_K") || name.ends_with("r_s_bias") || name.ends_with("seg_embed")) continue;
    EXPECT_GT(gradients[i].abs().max().item<double>(), 0) << name;
  }
}

TEST_P(PartContract, ScansAsItWasTrained) {
  const TrialSpec t = trial_of(small_config(*GetParam()));
  const std::vector<float> parameters = moved_from_start(t);
  TrainedModel model(t, parameters);
  const int64_t sequences = 3, tokens = tokens_of(t);
  std::vector<Sample> samples(static_cast<size_t>(sequences));
  for (int64_t i = 0; i < sequences * tokens; ++i) samples[static_cast<size_t>(i / tokens)].ids.push_back(i);
  const Batch batch = make_batches(samples, model.spec(), sequences).front();
  const FrozenNetwork scanned(model.spec(), model, batch);
  TaskBatch ask = task_named(t.task.name).sample(t.task, *cpu_draw(kTestSeed, 0, 0, sequences));
  ask.tokens = ask.tokens.to(at::kDouble);
  ask.target.reset();
  const ParameterViews views(Layout(t.network), tensor_of(parameters).to(at::kDouble), false, false);
  EXPECT_LT(distance(scanned.output(), plain_forward(t.network, views, ask)), 1e-12);
}

TEST_P(PartContract, TrainingLowersItsError) {
  TrialSpec t = trial_of(small_config(*GetParam()));
  t.protocol.batch = 64;
  t.protocol.steps = 60;
  t.protocol.test_sequences = 200;
  const auto stack = make_stack({t}, {fresh_state(t)}, {.device = "cpu", .threads = 2});
  const double before = stack->evaluate().front().mse;
  std::vector<double> losses(1);
  stack->advance(60, losses);
  EXPECT_LT(stack->evaluate().front().mse, before);
}

INSTANTIATE_TEST_SUITE_P(Every, PartContract, testing::ValuesIn(parts()),
                         [](const auto& part) { return std::string(part.param->name); });

}  // namespace
}  // namespace rankscope
