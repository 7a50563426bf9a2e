// The observed pass: prefixes are shared, batches do not matter, and what is reported is what was computed.
#include "pass/pass.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "scan/pass_run.h"
#include "spec/edit.h"

namespace rankscope {
namespace {

using test::tiny_spec;

TEST(Pass, SharesThePrefixInWhichVariantsAgree) {
  const ModelSpec spec = tiny_spec(NormPlace::post, 4);
  const auto source = random_source(spec, 1, "float32", "cpu");
  // full 4 blocks; a head in the last layer adds 1; two heads of layer 1 add 3 each; skip off adds 4.
  EXPECT_EQ(count_steps(plan_of(spec, *source, {})), 4);
  EXPECT_EQ(count_steps(plan_of(spec, *source, {"head:L3H0"})), 5);
  EXPECT_EQ(count_steps(plan_of(spec, *source, {"head:L3H0", "head:L1H0", "head:L1H1"})), 11);
  EXPECT_EQ(count_steps(plan_of(spec, *source, {"skip"})), 8);
}

TEST(Pass, CountsTheStepsItTakes) {
  const ModelSpec spec = tiny_spec(NormPlace::post, 4);
  const auto source = random_source(spec, 1, "float32", "cpu");
  PassPlan plan = plan_of(spec, *source, {"head:L3H0", "skip", "head:L1H0"});
  int64_t calls = 0, last = 0, total = 0;
  ResultTable table;
  std::vector<std::string> notes;
  run_pass(plan, table, notes,
           [&](int64_t done, int64_t all, const std::string&) { ++calls, last = done, total = all; });
  EXPECT_EQ(calls, count_steps(plan));
  EXPECT_EQ(last, total);
}

TEST(Pass, VariantsGiveTheNumbersTheyGiveAlone) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const ModelSpec spec = tiny_spec(place);
    const auto source = random_source(spec, 1, "float64", "cpu");
    const PassOutcome together = run(plan_of(spec, *source, {"head:L2H0", "skip+mlp", "position"}));
    for (const char* off : {"head:L2H0", "skip+mlp", "position"}) {
      const PassOutcome alone = run(plan_of(spec, *source, {off}));
      for (const Row& r : alone.table.rows) {
        const Row* same = together.table.find(r.variant.str(), r.metric.str(), r.layer, r.head,
                                              r.tokens.str(), r.site.str());
        ASSERT_NE(same, nullptr) << r.variant.str() << " " << r.metric.str();
        EXPECT_EQ(same->value, r.value) << r.variant.str() << " " << r.metric.str() << " L" << r.layer;
      }
    }
  }
}

TEST(Pass, BatchesDoNotMatter) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const auto source = random_source(spec, 1, "float64", "cpu");
  const PassOutcome one = run(plan_of(spec, *source, {"skip"}, 1)),
                    many = run(plan_of(spec, *source, {"skip"}, 8));
  ASSERT_EQ(one.table.rows.size(), many.table.rows.size());
  for (const Row& r : one.table.rows) {
    const Row* same =
        many.table.find(r.variant.str(), r.metric.str(), r.layer, r.head, r.tokens.str(), r.site.str());
    ASSERT_NE(same, nullptr) << r.metric.str();
    // Another batch is another order of float64 sums. sqrt(eps) where a Gram matrix stands between.
    EXPECT_NEAR(same->value, r.value, 1e-7 * std::max(1.0, std::abs(r.value)))
        << r.variant.str() << r.metric.str();
  }
}

// attn.hook_gate is a site of gated attention and of delta rules.
TEST(Pass, ASiteThatSeveralPartsDeclareIsReadOnce) {
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  spec.blocks[0].attention_branch()->part.name = "gated_attention";
  const auto source = random_source(spec, 1, "float32", "cpu");
  int64_t rows = 0;
  for (const Row& r : run(plan_of(spec, *source, {})).table.rows)
    rows += r.metric.str() == "gate_mean" && r.head == 2;
  EXPECT_EQ(rows, 1);
}

TEST(Pass, ReportsEveryDepthOfTheResidualStream) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const auto source = random_source(spec, 1, "float32", "cpu");
  const PassOutcome r = run(plan_of(spec, *source, {}));
  EXPECT_NE(r.table.find("full", "residual_fro", 0, -1, "all", "blocks.0.hook_resid_pre"), nullptr);
  for (int l = 0; l < 3; ++l) {
    const Row* post =
        r.table.find("full", "residual_fro", l, -1, "all", fmt::format("blocks.{}.hook_resid_post", l));
    const Row* in =
        r.table.find("full", "residual_fro", l, -1, "all", fmt::format("blocks.{}.ln1.hook_normalized", l));
    ASSERT_NE(post, nullptr);
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(post->depth, l + 1);
    EXPECT_EQ(in->depth, l);
    EXPECT_EQ(post->n, 5);
  }
  EXPECT_NE(r.table.find("full", "residual_fro", -1, -1, "all", "ln_final.hook_normalized"), nullptr);
}

TEST(Pass, ShowsALensEverySiteItNamesOnceABatch) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const auto source = random_source(spec, 1, "float64", "cpu");
  std::vector<SiteUse> whole;
  for (const SiteInfo& site : sites())
    if (site.form == SiteForm::whole && site.present(spec, spec.blocks[0]))
      whole.push_back({site.name, SiteForm::whole});
  const Lens lens = lens_reading(whole);
  PassPlan plan = plan_of(spec, *source, {"mlp", "skip"}, 2);
  plan.lenses = {&lens};
  const PassOutcome r = run(plan);
  const auto row = [&](const char* variant, const std::string& site, const char* metric) {
    const int layer = site.starts_with("blocks.") ? site[7] - '0' : -1;
    return r.table.find(variant, metric, layer, -1, "all", site);
  };
  for (const SiteUse& use : whole)
    for (int l = 0; l < 3; ++l) {
      const std::string name =
          site_named(use.site).in_block ? fmt::format("blocks.{}.{}", l, use.site) : std::string(use.site);
      ASSERT_NE(row("full", name, "mean"), nullptr) << name;
      EXPECT_EQ(row("full", name, "mean")->n, 5) << name;
      EXPECT_EQ(row("full", name, "batches")->value, 3) << name;
      EXPECT_EQ(row("-mlp", name, "mean") == nullptr, name.find("mlp") != std::string::npos ||
                                                          name.find("ln2") != std::string::npos ||
                                                          name.find("mid") != std::string::npos)
          << name;
    }
  // What one block writes is what the next one reads.
  for (const char* variant : {"full", "-mlp", "-skip"})
    for (int l = 0; l < 2; ++l)
      EXPECT_EQ(row(variant, fmt::format("blocks.{}.hook_resid_post", l), "mean")->value,
                row(variant, fmt::format("blocks.{}.hook_resid_pre", l + 1), "mean")->value);
}

TEST(Pass, ShowsWhatStepsShowAgainWhereVariantsShareThem) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const ModelSpec spec = tiny_spec(place);
    const auto source = random_source(spec, 1, "float64", "cpu");
    std::vector<SiteUse> around;
    for (const SiteInfo& site : sites())
      if (site.form == SiteForm::whole && site.shown_by != ShownBy::part &&
          site.present(spec, spec.blocks[0]))
        around.push_back({site.name, SiteForm::whole});
    const Lens lens = lens_reading(around);
    const auto table = [&](const std::vector<std::string>& off) {
      PassPlan plan = plan_of(spec, *source, off, 2);
      plan.lenses = {&lens};
      return run(plan).table;
    };
    const ResultTable together = table({"mlp", "mlp-skip"});  // they share the attention of the first block
    for (const char* off : {"mlp", "mlp-skip"})
      for (const Row& r : table({off}).rows) {
        const Row* same =
            together.find(r.variant.str(), r.metric.str(), r.layer, r.head, "all", r.site.str());
        ASSERT_NE(same, nullptr) << r.variant.str() << " " << r.site.str();
        EXPECT_EQ(same->value, r.value) << r.variant.str() << " " << r.site.str();
      }
  }
}

TEST(Pass, RefusesALensThatAsksForWhatThereIsNot) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float32", "cpu");
  PassPlan plan = plan_of(spec, *source, {});
  const auto message = [&](const SiteUse& use) {
    const Lens lens = lens_reading({use});
    plan.lenses = {&lens};
    try {
      run(plan);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("nothing");
  };
  EXPECT_EQ(message({"hook_resid_past", SiteForm::whole}), "there is no site \"hook_resid_past\"");
  EXPECT_EQ(message({"attn.hook_result", SiteForm::whole}),
            "the lens mean asks for attn.hook_result as whole, but it comes as factored");
}

// A tensor of another shape than lenses/lens.h asks for.
class Misshapen : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    return at::zeros({view.packing.count(), 2}, at::kDouble);
  }
};

TEST(Pass, RefusesATensorOfAnotherShapeThanItAskedFor) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float32", "cpu");
  PassPlan plan = plan_of(spec, *source, {});
  Lens lens = lens_reading({{"hook_resid_post", SiteForm::whole}});
  lens.start = [](const LensContext&) -> std::unique_ptr<Measurement> {
    return std::make_unique<Misshapen>();
  };
  plan.lenses = {&lens};
  try {
    run(plan);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "the lens mean should return [-1, 5, -1, 2], where -1 is any size, but returned [5, 2]");
    EXPECT_EQ(e.place(), "blocks.0.hook_resid_post");
  }
}

TEST(Pass, OnlyLooksAtTheLayersAskedFor) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float32", "cpu");
  PassPlan plan = plan_of(spec, *source, {});
  plan.layers = parse_layers("1", 3);
  for (const Row& r : run(plan).table.rows) EXPECT_EQ(r.layer, 1) << r.site.str();
}

}  // namespace
}  // namespace rankscope
