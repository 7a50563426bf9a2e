// The observed pass: prefixes are shared, batches do not matter, and what is reported is what was computed.
#include "pass/pass.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/random_source.h"
#include "pass/fitting.h"
#include "pass/output.h"
#include "pass/variants.h"
#include "scan/fixture_request.h"
#include "spec/edit.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

struct Outcome {
  ResultTable table;
  std::vector<std::string> notes;
  std::vector<FinalState> states;
};

PassPlan plan_of(const ModelSpec& spec, WeightSource& source, const std::vector<std::string>& off,
                 int64_t batch_size = 8) {
  ScanRequest request;
  request.off = off;
  PassPlan plan;
  plan.variants = make_variants(request, spec);
  plan.sources = {&source};
  plan.inputs.push_back(make_batches(random_samples({9, 5, 9, 12, 5}, 50), spec, batch_size));
  plan.lenses = lenses();
  plan.layers = parse_layers("", spec.depth());
  return plan;
}

Outcome run(PassPlan plan) {
  Outcome r;
  r.states = run_pass(plan, r.table, r.notes, {});
  std::vector<const FinalState*> others;
  for (size_t i = 1; i < r.states.size(); ++i) others.push_back(&r.states[i]);
  compare_outputs(r.states.front(), plan, others, plan, r.table, r.notes);
  return r;
}

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
    const Outcome together = run(plan_of(spec, *source, {"head:L2H0", "skip+mlp", "position"}));
    for (const char* off : {"head:L2H0", "skip+mlp", "position"}) {
      const Outcome alone = run(plan_of(spec, *source, {off}));
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
  const Outcome one = run(plan_of(spec, *source, {"skip"}, 1)),
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

TEST(Pass, ReportsEveryDepthOfTheResidualStream) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const auto source = random_source(spec, 1, "float32", "cpu");
  const Outcome r = run(plan_of(spec, *source, {}));
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

// Reports the mean of what it is shown, and how many tensors that were.
class MeanOf : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    ++seen_;
    at::Tensor out = at::full({1, view.packing.count(), 1, 2}, kNone, at::kDouble);
    for (int64_t s = 0; s < view.packing.count(); ++s)
      out[0][s][0][0] =
          view.x.narrow(0, view.packing.offsets[static_cast<size_t>(s)], view.packing.length(s)).mean();
    return out;
  }
  at::Tensor finish() override {
    at::Tensor out = at::full({1, 2, 3}, kNone, at::kDouble);
    out[0][1] = at::tensor({static_cast<double>(seen_), kNone, 5.0}, at::kDouble);
    return out;
  }
  int64_t seen_ = 0;
};

Lens lens_reading(std::vector<SiteUse> sites) {
  return {
      .name = "mean",
      .summary = {},
      .cost = {},
      .sites = std::move(sites),
      .metrics = {{.name = "mean", .formula = {}, .meaning = {}},
                  {.name = "batches", .formula = {}, .meaning = {}}},
      .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<MeanOf>(); }};
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
  const Outcome r = run(plan);
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

// A source that changes the weights of one block.
class Changed : public WeightSource {
 public:
  explicit Changed(const ModelSpec& spec) : inner_(random_source(spec, 1, "float32", "cpu")) {}
  const ModelSpec& spec() const override { return inner_->spec(); }
  Weights load(const std::string& part) override {
    Weights w = inner_->load(part);
    if (part == "blocks.1") change(w);
    return w;
  }
  virtual void change(Weights& block) const = 0;
  at::Tensor rows(const std::string& p, const at::Tensor& i) override { return inner_->rows(p, i); }
  at::Tensor row_range(const std::string& p, int64_t a, int64_t b) override {
    return inner_->row_range(p, a, b);
  }

 private:
  std::unique_ptr<WeightSource> inner_;
};

class Poisoned : public Changed {
 public:
  using Changed::Changed;
  void change(Weights& block) const override { block.set("mlp.b_out", at::full({24}, std::nan(""))); }
};

TEST(Pass, StopsWithTheSiteAndTheTokenWhereTheFullModelIsNoLongerFinite) {
  const ModelSpec spec = tiny_spec();
  Poisoned source(spec);
  for (const bool late : {false, true}) {
    PassPlan plan = plan_of(spec, source, {});
    plan.lenses = {};
    plan.late = late;
    try {
      run(plan);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "the activations hold NaN, Inf, or numbers whose squares overflow");
      // Every token is not: the first of the batch is of the first sample, the shortest.
      EXPECT_EQ(e.place(), "blocks.1.hook_resid_post, sample 1, token 0");
    }
  }
}

void expect_same(const ResultTable& a, const ResultTable& b) {
  ASSERT_EQ(a.rows.size(), b.rows.size());
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (size_t i = 0; i < a.rows.size(); ++i) {
    EXPECT_EQ(a.rows[i].variant, b.rows[i].variant);
    EXPECT_EQ(a.rows[i].site, b.rows[i].site);
    EXPECT_EQ(a.rows[i].metric, b.rows[i].metric);
    EXPECT_EQ(a.rows[i].head, b.rows[i].head);
    if (!std::isnan(a.rows[i].value)) {
      EXPECT_EQ(a.rows[i].value, b.rows[i].value) << a.rows[i].metric.str();
    }
  }
  for (size_t i = 0; i < a.samples.size(); ++i) EXPECT_EQ(a.samples[i].value, b.samples[i].value);
}

TEST(Pass, GivesTheSameRowsInTheSameOrderWhenTheyAreReadALayerLate) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const auto source = random_source(spec, 1, "float32", "cpu");
  PassPlan plan = plan_of(spec, *source, {"head:L1H0", "skip"}, 2);
  const Outcome now = run(plan);
  plan.late = true;
  const Outcome late = run(plan);
  EXPECT_GT(now.table.rows.size(), 100u);
  expect_same(now.table, late.table);
}

// A block whose MLP reads 1e29 times what it is given: fine behind a norm, Inf without one.
class Overflowing : public Changed {
 public:
  using Changed::Changed;
  void change(Weights& block) const override {
    const at::Tensor bias = block.get("attn.b_O").clone();
    bias[3] = 1e12f;
    block.set("attn.b_O", bias);
    block.set("mlp.W_in", block.get("mlp.W_in") * 1e29f);
    block.set("mlp.W_out", block.get("mlp.W_out") * 1e-29f);
  }
};

TEST(Pass, DropsAVariantThatIsNoLongerFiniteEvenWhenThatIsReadALayerLate) {
  const ModelSpec spec = tiny_spec(NormPlace::post, 4);
  Overflowing source(spec);
  const auto outcome = [&](bool late) {
    PassPlan plan = plan_of(spec, source, {"norm", "head:L0H0"});
    plan.lenses = choose_lenses({"residual"});
    plan.late = late;
    return run(plan);
  };
  const Outcome now = outcome(false), late = outcome(true);
  ASSERT_EQ(now.notes.size(), 1u);
  EXPECT_EQ(now.notes, late.notes);
  EXPECT_EQ(now.notes.front(),
            "-norm gave NaN or Inf at blocks.1.hook_resid_post, sample 1, token 0 and was not followed "
            "further");
  expect_same(now.table, late.table);
  EXPECT_NE(late.table.find("-norm", "residual_fro", 0, -1, "all", "blocks.0.hook_resid_post"), nullptr);
  EXPECT_EQ(late.table.find("-norm", "residual_fro", 1, -1, "all", "blocks.1.hook_resid_post"), nullptr);
  EXPECT_EQ(late.table.find("-norm", "residual_fro", 2, -1, "all", "blocks.2.hook_resid_post"), nullptr);
  EXPECT_NE(late.table.find("-head:L0H0", "residual_fro", 3, -1, "all", "blocks.3.hook_resid_post"), nullptr);
  EXPECT_EQ(late.states.size(), now.states.size());
}

// A lens that fails where it is shown a number that is not finite.
class Choosy : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    if (!view.x.isfinite().all().item<bool>()) throw Error("no eigenvalues of NaN");
    return at::ones({1, view.packing.count(), 1, 2}, at::kDouble);
  }
};

TEST(Pass, ALensThatFailsAtNaNDoesNotHideWhereTheNaNIs) {
  const ModelSpec spec = tiny_spec(NormPlace::post, 4);
  Overflowing source(spec);
  Lens lens = lens_reading({{"hook_resid_post", SiteForm::whole}});
  lens.start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Choosy>(); };
  PassPlan plan = plan_of(spec, source, {"norm"});
  plan.lenses = {&lens};
  plan.late = true;
  const Outcome r = run(plan);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_TRUE(r.notes.front().starts_with("-norm gave NaN or Inf at blocks.1.hook_resid_post"))
      << r.notes.front();
  EXPECT_NE(r.table.find("full", "mean", 3), nullptr);
  EXPECT_EQ(r.table.find("-norm", "mean", 1), nullptr);
}

// A lens that has room for `kRoom` samples at once.
constexpr int64_t kRoom = 2;
class Roomy : public Measurement {
  at::Tensor whole(const WholeView& view) override {
    TORCH_CHECK_WITH(OutOfMemoryError, view.packing.count() <= kRoom, "out of memory");
    return at::ones({1, view.packing.count(), 1, 2}, at::kDouble);
  }
};
class NoRoom : public Measurement {
  at::Tensor whole(const WholeView&) override {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory");
    return {};
  }
};

TEST(Pass, HalvesBatchesThatDoNotFitAndSaysSo) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float64", "cpu");
  Lens lens = lens_reading({{"hook_resid_post", SiteForm::whole}});
  lens.start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<Roomy>(); };
  PassPlan plan = plan_of(spec, *source, {"skip"});
  plan.lenses = {&lens};
  plan.device = "cuda:0";
  ResultTable table;
  std::vector<std::string> notes{"before"};
  const std::vector<FinalState> states = run_pass(plan, table, notes, {});
  // Five samples: three and two, then two, one, one and one.
  EXPECT_EQ(
      notes,
      (std::vector<std::string>{
          "before", "5 samples at once are more than the memory of cuda:0 holds: 3 are computed at once",
          "3 samples at once are more than the memory of cuda:0 holds: 2 are computed at once"}));
  ASSERT_EQ(plan.inputs.front().size(), 4u);
  EXPECT_EQ(table.find("full", "mean", 2)->n, 5);
  EXPECT_EQ(table.rows.size(), 2u * 3 * 2);  // variants, layers, metrics: nothing is there twice
  // The same states as in one batch, and one can be cut like the other.
  PassPlan whole = plan_of(spec, *source, {"skip"});
  whole.lenses = {};
  ResultTable none;
  std::vector<FinalState> together = run_pass(whole, none, notes, {});
  ASSERT_EQ(together.front().x->size(), 1u);
  together.front().cut_into(plan.inputs.front());
  ASSERT_EQ(together.front().x->size(), 4u);
  for (size_t b = 0; b < 4; ++b)  // another batch is another order of float64 sums, of at most 40 terms
    EXPECT_LT(((*together.front().x)[b] - (*states.front().x)[b]).abs().max().item<double>(), 1e-12);
}

TEST(Pass, SaysWhatWouldFitWhereOneSampleDoesNot) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float64", "cpu");
  Lens lens = lens_reading({{"hook_resid_post", SiteForm::whole}});
  lens.start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<NoRoom>(); };
  PassPlan plan = plan_of(spec, *source, {});
  plan.lenses = {&lens};
  ResultTable table;
  std::vector<std::string> notes;
  try {
    run_pass(plan, table, notes, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "one sample of 12 tokens is more than the memory of cpu holds");
    EXPECT_NE(e.advice().find("two blocks of weights alone take"), std::string::npos) << e.advice();
  }
  EXPECT_TRUE(table.rows.empty());
}

TEST(Pass, CountsTheMemoryThatALengthTakes) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float64", "cpu");
  const PassPlan plan = plan_of(spec, *source, {"skip"});
  // One token: three states of width 24; queries, keys, values and what heads carry of 4 x 6; 3 x 24 beside.
  EXPECT_EQ(least_bytes(plan, 9) - least_bytes(plan, 8), 4 * (3 * 24 + 4 * 24 + 3 * 24));
  EXPECT_EQ(length_that_fits(plan, 64, least_bytes(plan, 20)), 16);
  EXPECT_EQ(length_that_fits(plan, 64, least_bytes(plan, 63)), 32);
  EXPECT_EQ(length_that_fits(plan, 64, 100), 0);
}

TEST(Scan, TheThresholdOfASinkIsTheOneSinkRatioCountsBy) {
  for (const auto& [threshold, ratio] : {std::pair{-1.0, 1.0}, {1.0, 0.0}}) {  // above any head, above none
    ScanRequest request = test::random_tokens_through("gpt2", 3, 8);
    request.lenses = {"sinks"};
    request.baseline = request.model;
    request.thresholds.set("sink", threshold);
    const ScanResult result = scan(request, {});
    for (const char* variant : {"full", "baseline"}) {
      const Row* row = result.table.find(variant, "sink_ratio", 1);
      ASSERT_NE(row, nullptr) << variant;
      EXPECT_EQ(row->value, ratio) << variant;
    }
  }
}

TEST(Output, KlIsThatOfTheDistributions) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float64", "cpu");
  const PassPlan plan = plan_of(spec, *source, {"mlp"});
  const Outcome r = run(plan);
  const at::Tensor W = source->row_range("unembed.W_U", 0, 50);
  double sum = 0;
  for (size_t b = 0; b < plan.inputs[0].size(); ++b) {
    const Batch& batch = plan.inputs[0][b];
    const at::Tensor p = at::log_softmax((*r.states[0].x)[b].matmul(W.t()), -1);
    const at::Tensor q = at::log_softmax((*r.states[1].x)[b].matmul(W.t()), -1);
    const at::Tensor kl = (p.exp() * (p - q)).sum(-1);
    for (int64_t s = 0; s < batch.count(); ++s)
      sum += kl.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s)).mean().item<double>();
  }
  const Row* row = r.table.find("-mlp", "output_kl", -1);
  ASSERT_NE(row, nullptr);
  EXPECT_NEAR(row->value, sum / 5, 1e-12 * sum);
  EXPECT_GT(row->value, 0);
}

TEST(Output, IsTheRelativeErrorOfTheHiddenStateWithoutAHead) {
  ModelSpec spec = tiny_spec();
  spec.output = {};
  const auto source = random_source(spec, 1, "float64", "cpu");
  const Outcome r = run(plan_of(spec, *source, {"mlp"}));
  const Row* row = r.table.find("-mlp", "output_error", -1);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->site.str(), "blocks.2.hook_resid_post");
  EXPECT_GT(row->value, 0.01);
}

TEST(Layers, AreParsedAsRangesAndRefusedByName) {
  EXPECT_EQ(parse_layers("0-1,3", 4), (std::vector<bool>{true, true, false, true}));
  for (const char* bad : {"a", "1-", "3-1", "1,,2", "-1", "1;2"})
    EXPECT_THROW(parse_layers(bad, 4), Error) << bad;
  EXPECT_THROW(parse_layers("4", 4), Error);
}

TEST(Lenses, AreChosenByNameOrTheNearestIsNamed) {
  EXPECT_EQ(choose_lenses({"eigen"}).front()->name, "eigen");
  for (const Lens* lens : choose_lenses({})) EXPECT_FALSE(lens->on_request);
  EXPECT_EQ(choose_lenses({"residual"}).front()->name, "residual");
  try {
    choose_lenses({"residul"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.advice().rfind("residual", 0), 0u) << e.advice();
  }
}

}  // namespace
}  // namespace rankscope
