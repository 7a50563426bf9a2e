// A plan and its proof: what is written computes what was planned, in every architecture that has a place for
// it.
#include "importance/plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/philox.h"
#include "checkpoint/put_back.h"
#include "checkpoint/stored.h"
#include "importance/planned_model.h"
#include "scan/scan.h"
#include "scan/verify.h"
#include "support/rounding.h"
#include "support/source_tree.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> model_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::fixtures() / "models"))
    if (entry.is_directory() && entry.path().filename() != "clip")
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Every parameter of every fixture, replaced by random numbers and read again.
TEST(PutBack, IsTheWayBackInEveryArchitecture) {
  int64_t checked = 0;
  for (const std::string& name : model_fixtures()) {
    const Checkpoint checkpoint(test::fixtures() / "models" / name);
    for (const Parameter& p : parameters(checkpoint.spec())) {
      const auto it = checkpoint.places().find(p.name);
      if (it == checkpoint.places().end() || !it->second.more.empty() ||
          p.name.find("attn.") == std::string::npos)
        continue;
      const Checkpoint::Place& place = it->second;
      at::Tensor stored = view_of(*place.file, *place.entry).to(at::kDouble).clone();
      const at::Tensor before = stored.clone();
      const at::Tensor old = finished(oriented(stored, place, p), place, p).clone();
      const at::Tensor value = at::randn(p.shape, at::kDouble);
      put_back(stored, place, p, value);
      const at::Tensor now = finished(oriented(stored, place, p), place, p);
      EXPECT_LT((now - value).abs().max().item<double>(), 1e-12) << name << " " << p.name;
      put_back(stored, place, p, old);  // nothing else of the tensor was touched
      EXPECT_LT((stored - before).abs().max().item<double>(), 1e-12) << name << " " << p.name;
      ++checked;
    }
  }
  EXPECT_GT(checked, 500);
}

// Token ids that any of the vocabularies has, from a counter: ten a line.
void write_ids(const fs::path& file, int lines, uint64_t seed) {
  const Philox random{seed, 1, 0};
  std::string text;
  uint64_t index = 0;
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < 10; ++i) text += fmt::format("{} ", 5 + random.below(60, index++));
    text += "\n";
  }
  write_file(file, text);
}

class Plan : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder;
  PlanRequest request(double budget) {
    write_ids(folder.path() / "ids.txt", 10, 3);
    PlanRequest r;
    r.scan.model = test::fixtures() / "models" / GetParam();
    r.scan.token_ids = folder.path() / "ids.txt";
    r.budget = budget;
    r.write = folder.path() / "planned";
    return r;
  }
};

// On so few tokens of a random network only a generous budget can be kept for sure.
TEST_P(Plan, IsWithinItsBudgetAndTheWrittenModelIsTheOnePlanned) {
  const PlanRequest r = request(2.0);
  const PlanResult plan = make_plan(r, {});
  EXPECT_LE(plan.search.upper, 2.0);
  EXPECT_LE(plan.search.rise.mean, plan.search.upper);
  EXPECT_EQ(plan.search.samples, 6);  // two of ten are held out, and two order
  EXPECT_EQ(plan.held_out.samples, 2);
  EXPECT_GT(plan.saved, 0);
  EXPECT_TRUE(plan.undecided.empty());
  bool changed = false;
  for (const PlannedLayer& l : plan.layers)
    changed = changed || !l.heads_out.empty() || l.qk > 0 || l.ov > 0 || l.kv > 0;
  EXPECT_TRUE(changed);

  const ModelSpec spec = Checkpoint(*r.write).spec();
  for (const LayerError& e : verify({*r.write, *r.write / "activations.safetensors", "float32", "cpu", 1}))
    EXPECT_LE(e.relative(), test::forward_error(spec.depth(), spec.width)) << e.tensor;

  ScanRequest again;
  again.model = *r.write;
  again.token_ids = r.scan.token_ids;
  again.lenses = {"residual"};
  const ScanResult scanned = scan(again, {});
  const Row* loss = scanned.table.find("full", "nll", -1);
  ASSERT_NE(loss, nullptr);
  // Logits of a float32 forward pass on either side.
  EXPECT_NEAR(loss->value, plan.all.planned, 50 * test::forward_error(spec.depth(), spec.width));
}

/// What a plan for one of the small models is refused with; empty: it was planned.
std::string refusal(const char* model) {
  PlanRequest r;
  r.scan.model = test::fixtures() / "models" / model;
  r.scan.random_tokens = true;
  try {
    make_plan(r, {});
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

// A norm over all heads at once sees other numbers where some are cut, and no folder can say so.
TEST(PlanRefusal, AModelOfWhichNothingCanBeWrittenBackIsRefused) {
  EXPECT_EQ(refusal("olmo2"), "no head and no map of this model can be written back changed");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Plan,
                         testing::Values("gpt2", "gpt2-fp16", "llama", "qwen3", "gpt-neox", "bloom", "falcon",
                                         "phi", "gemma2", "opt", "mixtral"));

// Texts of random tokens have a truth: the loss on very many of them. Ten lines say next to nothing of it,
// and a search by means alone planned cuts here that cost up to five times the budget on texts it had not
// read.
TEST(PlanOf, AFewTextsDoesNotCostMoreThanItsBudgetOnManyOthers) {
  const fs::path model = test::fixtures() / "models" / "gpt2";
  const TemporaryFolder folder;
  write_ids(folder.path() / "many.txt", 400, 99);
  const auto loss_of = [&](const fs::path& of) {
    ScanRequest r;
    r.model = of;
    r.token_ids = folder.path() / "many.txt";
    r.samples = 400;
    r.lenses = {"residual"};
    return scan(r, {}).table.find("full", "nll", -1)->value;
  };
  const double full = loss_of(model);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    write_ids(folder.path() / "few.txt", 10, seed);
    PlanRequest r;
    r.scan.model = model;
    r.scan.token_ids = folder.path() / "few.txt";
    r.budget = 0.05;
    r.write = folder.path() / fmt::format("planned{}", seed);
    const PlanResult plan = make_plan(r, {});
    EXPECT_LE(loss_of(*r.write) - full, 0.05) << "seed " << seed;
    if (plan.saved > 0) continue;
    EXPECT_TRUE(plan.undecided.starts_with("this text is too small to decide:")) << plan.undecided;
    EXPECT_FALSE(plan.report.verdict.front().known);
  }
}

TEST(PlanOf, ManyTextsFindsWhatCanGoAndTheOthersAgree) {
  const TemporaryFolder folder;
  write_ids(folder.path() / "ids.txt", 300, 5);
  PlanRequest r;
  r.scan.model = test::fixtures() / "models" / "gpt2";
  r.scan.token_ids = folder.path() / "ids.txt";
  r.scan.samples = 300;
  r.budget = 0.3;
  const PlanResult plan = make_plan(r, {});
  EXPECT_GT(plan.saved, 0);
  EXPECT_NE(held_against(plan.held_out.rise, r.budget), Held::over);
  EXPECT_EQ(plan.search.samples, 232);  // 60 are held out, 8 order
  const Json& said = plan.report.manifest.at("plan");
  EXPECT_EQ(said.at("steps").size(), plan.steps.size());
  EXPECT_NE(plan.report.table.find("planned", "plan_loss_held_out", -1), nullptr);
}

TEST(PlanOf, ANetworkOfTwoStreamsIsRefused) {
  EXPECT_EQ(refusal("t5"), "a plan follows one stream, and this network has several");
}

TEST(PlanOf, NothingWhereTheBudgetIsNothingAndEverythingCosts) {
  // A budget below zero cannot be asked for.
  PlanRequest r;
  r.budget = -1;
  EXPECT_THROW(make_plan(r, {}), Error);
}

TEST(PlanOf, AModelThatSharesItsLayersIsRefused) {
  PlanRequest r;
  r.scan.model = test::fixtures() / "models" / "albert";
  r.scan.random_tokens = true;
  EXPECT_THROW(make_plan(r, {}), Error);
}

TEST(CanWrite, KnowsWhichCutsHaveAPlace) {
  const Checkpoint llama(test::fixtures() / "models" / "llama"), gpt2(test::fixtures() / "models" / "gpt2");
  EXPECT_TRUE(can_write(gpt2, 0, "qk"));
  EXPECT_TRUE(can_write(gpt2, 0, "ov"));
  EXPECT_TRUE(can_write(gpt2, 0, "kv"));
  EXPECT_TRUE(can_write(llama, 0, "qk"));
  EXPECT_EQ(can_write(llama, 0, "ov"),
            llama.spec().blocks[0].attention().heads == llama.spec().blocks[0].attention().kv_heads);
}

}  // namespace
}  // namespace rankscope
