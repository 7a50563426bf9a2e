// What the pass does where numbers are no longer finite, and where memory does not suffice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "pass/fitting.h"
#include "pass/scanned_model.h"
#include "scan/pass_run.h"
#include "spec/edit.h"

namespace rankscope {
namespace {

using test::tiny_spec;

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
  const PassOutcome now = run(plan);
  plan.late = true;
  const PassOutcome late = run(plan);
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
  const PassOutcome now = outcome(false), late = outcome(true);
  ASSERT_EQ(now.notes.size(), 1u);
  EXPECT_EQ(now.notes, late.notes);
  EXPECT_EQ(now.notes.front(),
            "-norm gave NaN or Inf at blocks.1.hook_resid_post, sample 1, token 0 and was not followed "
            "further");
  EXPECT_EQ(now.not_finite,
            (decltype(now.not_finite){{"-norm", "blocks.1.hook_resid_post, sample 1, token 0"}}));
  EXPECT_EQ(late.not_finite, now.not_finite);
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
  const PassOutcome r = run(plan);
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

TEST(Pass, NumbersOfThreadsThatCannotBeAreRefused) {
  for (const int threads : {-1, kMostThreads + 1}) {
    ScanRequest request;
    request.threads = threads;
    try {
      prepare_run(request);
      FAIL() << threads;
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), fmt::format("--threads should be from 0 to 1024, not {}", threads));
    }
  }
}

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

}  // namespace
}  // namespace rankscope
