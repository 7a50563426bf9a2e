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

class Plan : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder;
  PlanRequest request(double budget) {
    // Token ids that any of the vocabularies has, from a counter.
    const Philox random{3, 1, 0};
    std::string text;
    uint64_t index = 0;
    for (int line = 0; line < 10; ++line) {
      for (int i = 0; i < 10; ++i) text += fmt::format("{} ", 5 + random.below(60, index++));
      text += "\n";
    }
    write_file(folder.path() / "ids.txt", text);
    PlanRequest r;
    r.scan.model = test::fixtures() / "models" / GetParam();
    r.scan.token_ids = folder.path() / "ids.txt";
    r.budget = budget;
    r.write = folder.path() / "planned";
    return r;
  }
};

TEST_P(Plan, IsWithinItsBudgetAndTheWrittenModelIsTheOnePlanned) {
  const PlanRequest r = request(0.05);
  const PlanResult plan = make_plan(r, {});
  EXPECT_LE(plan.search.gained, 0.05);
  EXPECT_EQ(plan.search.samples, 8);
  EXPECT_EQ(plan.held_out.samples, 2);
  EXPECT_GT(plan.saved, 0);
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

// A norm over all heads at once sees other numbers where some are cut, and no folder can say so.
TEST(PlanRefusal, AModelOfWhichNothingCanBeWrittenBackIsRefused) {
  PlanRequest r;
  r.scan.model = test::fixtures() / "models" / "olmo2";
  r.scan.random_tokens = true;
  try {
    make_plan(r, {});
    ADD_FAILURE() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "no head and no map of this model can be written back changed");
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Plan,
                         testing::Values("gpt2", "gpt2-fp16", "llama", "qwen3", "gpt-neox", "bloom", "falcon",
                                         "phi", "gemma2", "opt", "mixtral"));

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
