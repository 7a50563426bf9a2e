// A plan and its proof: what is written computes what was planned, in every architecture that has a place for
// it.
#include "importance/plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

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

// Token ids that the vocabulary has, from a counter: ten a line.
void write_ids(const fs::path& file, int lines, uint64_t seed, const char* model = "gpt2") {
  const int64_t words = Checkpoint(test::fixtures() / "models" / model).spec().embedding.vocabulary;
  const auto drawn = static_cast<uint64_t>(std::min<int64_t>(60, words - 5));
  const Philox random{seed, 1, 0};
  std::string text;
  uint64_t index = 0;
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < 10; ++i) text += fmt::format("{} ", 5 + random.below(drawn, index++));
    text += "\n";
  }
  write_file(file, text);
}

class Plan : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder;
  PlanRequest request(double budget) {
    write_ids(folder.path() / "ids.txt", 10, 3, GetParam());
    PlanRequest r;
    r.scan.model = test::fixtures() / "models" / GetParam();
    r.scan.token_ids = folder.path() / "ids.txt";
    r.budget = budget;
    return r;
  }
  fs::path planned() const { return folder.path() / "planned"; }
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

  EXPECT_FALSE(fs::exists(planned()));  // the search is over, and nothing is written yet
  plan.write(planned());
  const ModelSpec spec = Checkpoint(planned()).spec();
  for (const LayerError& e : verify({planned(), planned() / "activations.safetensors", "float32", "cpu", 1}))
    EXPECT_LE(e.relative(), test::forward_error(spec.depth(), spec.width)) << e.tensor;

  ScanRequest again;
  again.model = planned();
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

// A model on disk with one tensor multiplied, as no training leaves it.
void scale_tensor(const fs::path& from, const fs::path& to, const std::string& ends_with, double factor) {
  const Checkpoint checkpoint(from);
  std::vector<TensorToWrite> list;
  std::vector<at::Tensor> kept;
  for (const auto& [name, located] : checkpoint.store().tensors()) {
    at::Tensor t = view_of(*located.file, *located.entry).to(at::kFloat).clone();
    if (name.ends_with(ends_with)) t.mul_(factor);
    kept.push_back(t);
    list.push_back({name, StoredType::f32, located.entry->shape,
                    std::as_bytes(std::span(static_cast<const char*>(t.data_ptr()), t.nbytes()))});
  }
  fs::create_directories(to);
  write_file(to / "config.json", read_file(from / "config.json"));
  write_safetensors(to / "model.safetensors", list);
}

TEST(PlanRefusal, AModelThatOverflowsHasNoLossToKeep) {
  const TemporaryFolder folder;
  scale_tensor(test::fixtures() / "models" / "gpt2", folder.path() / "huge", "h.1.mlp.c_proj.weight", 1e30);
  write_ids(folder.path() / "ids.txt", 10, 3);
  PlanRequest r;
  r.scan.model = folder.path() / "huge";
  r.scan.token_ids = folder.path() / "ids.txt";
  try {
    make_plan(r, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the activations hold NaN, Inf, or numbers whose squares overflow");
    EXPECT_EQ(error.place(), "blocks.1.hook_resid_post, sample 0, token 0");
  }
}

// The files of a run that was killed go, others stay; what is written now is whole.
TEST(PlanOf, AModelIsWrittenOverWhatAKilledRunLeft) {
  const TemporaryFolder folder;
  const fs::path planned = folder.path() / "planned";
  fs::create_directory(planned);
  write_file(planned / "unfinished.part999999999", "model.safetensors\nvocab.txt\nmerges.txt\n");
  for (const char* name : {"model.safetensors", "vocab.txt.part999999999", "merges.txt", "notes of mine",
                           "README of mine.md", "NOTICE"})
    write_file(planned / name, "half of it");
  write_ids(folder.path() / "ids.txt", 10, 3);
  PlanRequest r;
  r.scan.model = test::fixtures() / "models" / "gpt2";
  r.scan.token_ids = folder.path() / "ids.txt";
  make_plan(r, {}).write(planned);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(planned)) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"NOTICE", "README of mine.md", "activations.safetensors",
                                          "config.json", "model.safetensors", "notes of mine"}));
  EXPECT_FALSE(verify({planned, planned / "activations.safetensors", "float32", "cpu", 1}).empty());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Plan,
                         testing::Values("gpt2", "gpt2-fp16", "llama", "qwen3", "gpt-neox", "bloom", "falcon",
                                         "phi", "gemma2", "opt", "mixtral", "qwen3-next", "qwen3-5",
                                         "deepseek-v3"));

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
    const PlanResult plan = make_plan(r, {});
    const fs::path planned = folder.path() / fmt::format("planned{}", seed);
    plan.write(planned);
    EXPECT_LE(loss_of(planned) - full, 0.05) << "seed " << seed;
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
  EXPECT_NE(held_against(plan.held_out.rise, plan.held_out.samples, r.budget), Held::over);
  EXPECT_EQ(plan.search.samples, 232);  // 60 are held out, 8 order
  const Json& said = plan.report.manifest.at("plan");
  EXPECT_EQ(said.at("steps").size(), plan.steps.size());
  EXPECT_NE(plan.report.table.find("planned", "plan_loss_held_out", -1), nullptr);
}

TEST(PlanOf, ANetworkOfTwoStreamsIsRefused) {
  EXPECT_EQ(refusal("t5"), "a plan follows one stream, and this network has several");
}

TEST(PlanOf, ABudgetThatIsNoNumberOfNatsIsRefused) {
  for (const double budget : {-1.0, std::nan(""), HUGE_VAL}) {
    PlanRequest r;
    r.budget = budget;
    EXPECT_THROW(make_plan(r, {}), Error) << budget;
  }
}

// The plan of a small model on lines of random tokens; samples 0: all of them.
PlanResult plan_of(const char* model, int lines, double budget, int64_t samples = 0, uint64_t seed = 5) {
  const TemporaryFolder folder;
  write_ids(folder.path() / "ids.txt", lines, seed, model);
  PlanRequest r;
  r.scan.model = test::fixtures() / "models" / model;
  r.scan.token_ids = folder.path() / "ids.txt";
  r.scan.samples = samples > 0 ? samples : lines;
  r.budget = budget;
  return make_plan(r, {});
}

const Finding* about(const PlanResult& plan, const char* topic) {
  for (const Finding& f : plan.report.verdict)
    if (f.topic == topic) return &f;
  return nullptr;
}

// What a scan of a folder with that model reads: every tensor once, also where two parameters are one.
TEST(PlanOf, AModelWithATiedVocabularyCountsItOnce) {
  EXPECT_EQ(plan_of("gpt2", 30, 0.1).parameters, 23322);  // as rankscope inspect
}

// All attention of a layer that loses everything is Q, K, V and O without the output's bias: nothing of it
// can be saved twice.
TEST(PlanOf, EverythingSavesEveryMapOnceAndLeavesNothingToCut) {
  const PlanResult plan = plan_of("gpt2", 40, 1e9);
  EXPECT_EQ(plan.saved, 3 * (4 * 30 * 30 + 3 * 30));  // width 30, three layers
  EXPECT_EQ(plan.changes, 9);                         // heads
  EXPECT_DOUBLE_EQ(plan.cache_saved, 1);
  for (const PlannedLayer& l : plan.layers) {
    EXPECT_FALSE(l.has_heads());
    EXPECT_EQ(l.qk + l.ov + l.kv, 0);
  }
  EXPECT_TRUE(plan.rank_pattern.empty()) << plan.rank_pattern;
  EXPECT_EQ(about(plan, "plan")->sentence.find("is cut"), std::string::npos);
}

// Heads of gated attention and of delta rules take all they have with them, as evaluator_test.cpp counts it.
TEST(PlanOf, EverythingSavesGatesAndStatesToo) {
  const PlanResult plan = plan_of("qwen3-next", 40, 1e9);
  EXPECT_EQ(plan.saved, 3 * (3 * 8 * 18) + 2 * 8 * 18 +
                            3 * (4 * (3 * 5 * 18 + 5 * 4 + 2 * 18 + 2) + 2 * 2 * (6 * 18 + 6 * 4)));
  EXPECT_EQ(plan.changes, 3 + 3 * 4);
  EXPECT_DOUBLE_EQ(plan.cache_saved, 1);  // which layer 2 alone has
  EXPECT_TRUE(plan.rank_pattern.empty()) << plan.rank_pattern;
}

// Every measured step asks something: no change in it is already in the network of the steps before.
TEST(PlanOf, ASearchMeasuresNoChangeThatChangesNothing) {
  const PlanResult plan = plan_of("gpt2", 200, 1.0);
  std::map<std::string, int64_t> ranks;  // by "QK of layer 1"
  std::set<std::string> heads;
  int64_t repeated = 0, cuts = 0;
  for (const PlanStep& step : plan.steps) {
    std::map<std::string, int64_t> tried = ranks;
    std::set<std::string> out = heads;
    for (const std::string& what : step.what) {
      const size_t at = what.find(" to rank ");
      if (at == std::string::npos) {
        repeated += !out.insert(what).second;
        continue;
      }
      const int64_t rank = std::stoll(what.substr(at + 9));
      const auto [it, first] = tried.try_emplace(what.substr(0, at), rank);
      repeated += !first && it->second <= rank;
      it->second = std::min(it->second, rank);
      ++cuts;
    }
    if (step.taken) ranks = tried, heads = out;
  }
  EXPECT_GT(cuts, 3);
  EXPECT_EQ(repeated, 0);
}

TEST(PlanOf, APartOfAFileSaysSoAndAsksForMoreSamples) {
  PlanResult part, all;
  for (uint64_t seed = 1; seed <= 10 && part.undecided.empty(); ++seed) {  // texts on which nothing is sure
    part = plan_of("gpt2", 20, 0.02, 10, seed), all = plan_of("gpt2", 10, 0.02, 0, seed);
    EXPECT_EQ(part.undecided.empty(), all.undecided.empty());  // the same ten lines
  }
  const auto noted = [](const PlanResult& plan) {
    return std::count(plan.notes.begin(), plan.notes.end(),
                      "10 of 20 samples were read: --samples 20 reads more");
  };
  EXPECT_EQ(noted(part), 1);
  EXPECT_EQ(noted(all), 0);
  EXPECT_TRUE(part.undecided.starts_with("these samples are too few to decide:")) << part.undecided;
  EXPECT_TRUE(part.undecided.ends_with("(--samples reads more)")) << part.undecided;
  EXPECT_TRUE(all.undecided.starts_with("this text is too small to decide:")) << all.undecided;
}

// Two samples that no search has read decide nothing, however alike they are.
TEST(PlanOf, TwoSamplesHeldOutDoNotSayThatItHolds) {
  const PlanResult plan = plan_of("gpt2", 10, 1e9);
  EXPECT_EQ(plan.held_out.samples, 2);
  EXPECT_FALSE(about(plan, "held out")->known);
  EXPECT_EQ(plan.report.manifest.at("plan").at("held_out_says"), "undecided");
  EXPECT_FALSE(about(plan, "sharing")->known);
  EXPECT_EQ(plan.report.manifest.at("plan").at("sharing").at("held_out_says"), "undecided");
  EXPECT_TRUE(about(plan_of("gpt2", 40, 1e9), "held out")->known);  // eight do
  EXPECT_TRUE(about(plan_of("gpt2", 40, 1e9), "sharing")->known);
}

// PEFT's pattern beside the tensors of the written folder. Random weights have every rank that they may have.
class Pattern : public testing::TestWithParam<const char*> {};
TEST_P(Pattern, IsTheRankOfEveryTensorThatThePlanChanged) {
  const TemporaryFolder folder;
  int64_t checked = 0, below = 0;
  std::vector<double> budgets{0.3};
  if (std::string(GetParam()) != "qwen3-next")
    budgets.insert(budgets.end(), {1.0, 3.0});  // it has heads alone
  for (const double budget : budgets) {
    const PlanResult plan = plan_of(GetParam(), 60, budget);
    const fs::path planned = folder.path() / fmt::format("{}", budget);
    plan.write(planned);
    const Checkpoint before(test::fixtures() / "models" / GetParam()), after(planned);
    for (const auto& [name, located] : after.store().tensors()) {
      const std::string module = name.substr(0, name.rfind(".weight"));
      const at::Tensor now = view_of(*located.file, *located.entry).to(at::kDouble);
      const auto& old = before.store().tensors().at(name);
      const at::Tensor was = view_of(*old.file, *old.entry).to(at::kDouble);
      if (now.dim() < 2 || (at::equal(now, was) && !plan.rank_pattern.contains(module))) continue;
      const at::Tensor sigma = at::linalg_svdvals(now);
      if (sigma.max().item<double>() == 0) continue;  // all heads of the layer are out
      // Stored in float32, whose rounding is 6e-8 of the entries.
      const int64_t rank = (sigma > 1e-5 * sigma.max()).sum().item<int64_t>();
      ASSERT_TRUE(plan.rank_pattern.contains(module)) << module;
      EXPECT_EQ(plan.rank_pattern.at(module), rank) << module << " at budget " << budget;
      ++checked;
      below += rank < std::min(now.size(0), now.size(1));
    }
  }
  EXPECT_GT(checked, 0);
  EXPECT_GT(below, 0);
}
INSTANTIATE_TEST_SUITE_P(Fixtures, Pattern, testing::Values("gpt2", "opt", "bloom", "qwen3-next"));

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

// A cut of OV moves what the norm's bias makes heads carry into the output's bias, too.
TEST(CanWrite, NeedsAnOutputBiasWhereANormHasOne) {
  const TemporaryFolder folder;
  const fs::path with_biases = test::fixtures() / "models" / "gpt-neox", without = folder.path() / "model";
  fs::copy(with_biases, without);
  std::string config = read_file(without / "config.json");
  const std::string said = "\"attention_bias\": true";
  config.replace(config.find(said), said.size(), "\"attention_bias\": false");
  fs::remove(without / "config.json");
  write_file(without / "config.json", config);
  EXPECT_TRUE(can_write(Checkpoint(with_biases), 0, "ov"));
  EXPECT_FALSE(can_write(Checkpoint(without), 0, "ov"));
  EXPECT_TRUE(can_write(Checkpoint(without), 0, "qk"));
}

}  // namespace
}  // namespace rankscope
