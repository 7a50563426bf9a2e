// A trial is a function of its configuration: company, threads and interruptions change no bit of it.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "support/temporary_folder.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

std::vector<float> trained(const std::vector<TrialSpec>& trials, int threads, int64_t steps,
                           size_t which = 0) {
  std::vector<TrainState> states;
  for (const TrialSpec& t : trials) states.push_back(fresh_state(t));
  const auto stack = make_stack(trials, states, {.device = "cpu", .threads = threads});
  std::vector<double> losses(trials.size());
  stack->advance(steps, losses);
  return stack->state(which).parameters;
}

TrialSpec other(TrialSpec t, int64_t heads, uint64_t seed, double lr) {
  t = with_heads(t, heads);
  t.init_seed = t.data_seed = seed;
  t.protocol.lr = lr;
  return t;
}

TEST(CpuStack, ATrialIsTheSameAloneAndInCompany) {
  const TrialSpec t = small_encoder();
  const std::vector<TrialSpec> company{other(t, 1, 3, 0.1), t, other(t, 8, 4, 0.001)};
  ASSERT_EQ(stack_key(company[0]), stack_key(t));
  ASSERT_EQ(stack_key(company[2]), stack_key(t));
  EXPECT_EQ(trained({t}, 1, 15), trained(company, 1, 15, 1));
}

// Whatever the specs say beside heads and score scales keeps trials apart, also what no list names.
TEST(CpuStack, TrialsThatDifferInTheirNetworkDoNotShareAStack) {
  const TrialSpec t = small_encoder();
  const auto refused = [&](auto change) {
    TrialSpec u = t;
    change(u);
    EXPECT_NE(stack_key(u), stack_key(t));
    EXPECT_THROW(make_stack({t, u}, {fresh_state(t), fresh_state(t)}, {.device = "cpu", .threads = 1}),
                 Error);
  };
  refused([](TrialSpec& u) { u.network.blocks[1].attention().causal = true; });
  refused([](TrialSpec& u) { u.network.blocks[0].attention().variant = "hard"; });
  refused([](TrialSpec& u) { u.network.blocks[0].attention().rotary_frequencies = {1.0}; });
  refused([](TrialSpec& u) { u.network.blocks[1].branches[1].scale = 2; });
  refused([](TrialSpec& u) { u.network.blocks[1].branches[0].part.options["gate"] = 1; });
  refused([](TrialSpec& u) { u.network.blocks[0].branches[1].mlp()->activation = Activation::gelu; });
  refused([](TrialSpec& u) { u.network.blocks[0].parallel = true; });
  refused([](TrialSpec& u) { u.network.output.channels = 5; });
  refused([](TrialSpec& u) { u.protocol.dropout = 0.5; });
  refused([](TrialSpec& u) { u.task.name = "nearest"; });
}

// A network that no fused route knows trains by the plain interpretation, stacked and alone.
TEST(CpuStack, AnUnknownVariantTrainsAsItself) {
  TrialSpec t = small_encoder();
  for (BlockSpec& b : t.network.blocks) b.attention().causal = true;
  const std::vector<float> causal = trained({t}, 2, 5);
  EXPECT_NE(causal, trained({small_encoder()}, 2, 5));
  EXPECT_EQ(causal, trained({other(t, 1, 3, 0.1), t}, 1, 5, 1));
}

TEST(CpuStack, TheNumberOfThreadsChangesNoBit) {
  const TrialSpec t = small_encoder();
  const std::vector<float> one = trained({t}, 1, 15);
  EXPECT_EQ(one, trained({t}, 2, 15));
  EXPECT_EQ(one, trained({t}, 5, 15));
}

// Products large enough that BLAS would share them out, were it left to.
TEST(CpuStack, TheNumberOfThreadsChangesNoBitOfAWideNetwork) {
  EncoderWords w = small_words();
  w.d = 48;
  w.mlp = 700;
  TrialSpec t = trial_of(w, 16);
  t.protocol.batch = 100;
  EXPECT_EQ(trained({t}, 1, 3), trained({t}, 2, 3));
}

TEST(CpuStack, AnotherSeedIsAnotherTrial) {
  const TrialSpec t = small_encoder();
  TrialSpec data = t;
  data.data_seed = 99;
  EXPECT_NE(trained({t}, 1, 3), trained({data}, 1, 3));
}

TEST(CpuStack, TrainingLowersTheError) {
  for (TrialSpec t : {small_encoder(1), small_layer(8, 2, 8, 1)}) {
    t.protocol.steps = 300;
    const auto stack = make_stack({t}, {fresh_state(t)}, {.device = "cpu", .threads = 2});
    const double before = stack->evaluate().front().mse;
    std::vector<double> losses(1);
    stack->advance(300, losses);
    EXPECT_LT(stack->evaluate().front().mse, 0.5 * before);
  }
}

TEST(CpuStack, TheReplayedProtocolSeesTheSameHundredBatches) {
  TrialSpec t = small_encoder();
  t.protocol.replay = true;
  t.protocol.steps = 200;
  t.protocol.lr = 0;  // nothing moves, so the second hundred costs what the first did
  const auto stack = make_stack({t}, {fresh_state(t)}, {.device = "cpu", .threads = 2});
  std::vector<double> first(1), second(1);
  stack->advance(100, first);
  stack->advance(100, second);
  EXPECT_EQ(first, second);
}

class Trained : public testing::Test {
 protected:
  struct Result {
    std::vector<TrainOutcome> outcomes;
    bool finished = false;
  };

  // Stops at the first word of progress behind `stop_after` steps; 0: never.
  Result go(const std::string& name, std::vector<TrialSpec> trials, int64_t stop_after = 0) {
    std::vector<TrainJob> jobs;
    for (size_t i = 0; i < trials.size(); ++i) {
      jobs.push_back({trials[i], folder_.path() / name / std::to_string(i)});
      std::filesystem::create_directories(jobs.back().folder);
    }
    Result result;
    result.outcomes.resize(trials.size());
    std::atomic<bool> stop{false};
    size_t done = 0;
    TrainOptions options{.stack = {.device = "cpu", .threads = 2}, .stop = &stop};
    options.progress = [&](int64_t steps, int64_t, double) { stop = stop_after > 0 && steps >= stop_after; };
    options.finished = [&](size_t job, const TrainOutcome& o) {
      result.outcomes[job] = o;
      ++done;
    };
    train(jobs, options);
    result.finished = done == trials.size();
    return result;
  }

  std::string curve(const std::string& name) {
    std::ifstream in(folder_.path() / name / "0" / "curve.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TemporaryFolder folder_;
};

TEST_F(Trained, AnInterruptedTrialEndsAsIfNothingHadHappened) {
  TrialSpec t = small_encoder();
  t.protocol.steps = 230;
  t.protocol.eval_every = 70;
  const Result whole = go("whole", {t});
  Result part = go("part", {t}, 30);
  int stops = 0;
  while (!part.finished) {
    ASSERT_LT(++stops, 100);
    part = go("part", {t}, stops == 1 ? 150 : 40);
  }
  ASSERT_GE(stops, 2);
  EXPECT_EQ(part.outcomes[0].parameters, whole.outcomes[0].parameters);
  EXPECT_EQ(part.outcomes[0].record.test, whole.outcomes[0].record.test);
  EXPECT_EQ(part.outcomes[0].record.best_loss, whole.outcomes[0].record.best_loss);
  EXPECT_EQ(part.outcomes[0].record.last_loss, whole.outcomes[0].record.last_loss);
  EXPECT_EQ(part.outcomes[0].precision, "fp32");
  EXPECT_EQ(curve("part"), curve("whole"));
}

TEST_F(Trained, ADivergedTrialStopsAloneAndSaysWhy) {
  TrialSpec good = small_layer(8, 2, 4, 2), bad = good;
  bad.protocol.lr = 1e30;
  good.protocol.steps = bad.protocol.steps = 120;
  const Result r = go("pair", {bad, good});
  EXPECT_TRUE(r.outcomes[0].failed);
  EXPECT_NE(r.outcomes[0].reason.find("the training loss is not finite at step 6"), std::string::npos)
      << r.outcomes[0].reason;
  EXPECT_FALSE(r.outcomes[1].failed);
  EXPECT_EQ(r.outcomes[1].parameters, go("alone", {good}).outcomes[0].parameters);
}

TEST_F(Trained, LinesBehindTheLastCheckpointAreTakenOutOfTheCurve) {
  TrialSpec t = small_layer(8, 2, 4, 2);
  t.protocol.steps = 400;
  const std::string whole = (go("whole", {t}), curve("whole"));
  go("killed", {t}, 250);
  {
    std::ofstream more(folder_.path() / "killed" / "0" / "curve.jsonl", std::ios::app);
    more << "{\"step\":300,\"loss\":9}\n{\"step\":40";  // written after the checkpoint, the last line cut
                                                        // short
  }
  Result r = go("killed", {t});
  ASSERT_TRUE(r.finished);
  EXPECT_EQ(curve("killed"), whole);
}

// A checkpoint from before this was kept does not say, and its trial cannot.
TEST_F(Trained, ATrialThatGoesOnInAnotherPrecisionCountsAsTheCoarser) {
  TrialSpec t = small_layer(8, 2, 4, 2);
  t.protocol.steps = 400;
  for (const std::string before : {"fp32", "tf32", ""}) {
    const std::string name = "after-" + before;
    const auto file = folder_.path() / name / "0" / "checkpoint.safetensors";
    ASSERT_FALSE(go(name, {t}, 100).finished);
    Saved saved = load_trial(file, t).value();
    EXPECT_EQ(saved.precision, "fp32");
    saved.precision = before;
    save_trial(file, t.network, saved);
    EXPECT_EQ(load_trial(file, t)->precision, before);
    const Result r = go(name, {t});
    ASSERT_TRUE(r.finished);
    EXPECT_EQ(r.outcomes[0].precision, before);
  }
}

TEST_F(Trained, ACheckpointOfAnotherNetworkIsRefused) {
  TrialSpec t = small_layer(8, 2, 4, 2);
  t.protocol.steps = 400;
  go("trial", {t}, 100);
  t.network = points_layer(8, 2, 2, 1.0, 8);
  try {
    go("trial", {t});
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("of another shape"), std::string::npos);
  }
}

}  // namespace
}  // namespace rankscope
